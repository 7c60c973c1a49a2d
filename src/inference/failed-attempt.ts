import { logWarning } from "../lib/log.ts";
import type { ProviderFailure } from "../core/provider.ts";
import { whyFailed } from "../routing/asking-order.ts";
import { routeName } from "../routing/route-health.ts";
import type { Run, ServingRoute } from "./paid-request.ts";

/** Statuses that are told apart; of any other only its hundred is. */
const STATUSES: ReadonlySet<string> = new Set(
  "400 401 402 403 404 408 409 413 415 422 424 429 498 499 500 501 502 503 504 520 521 522 523 524 525 526 529 530".split(
    " ",
  ),
);

/**
 * Tells of an attempt at a provider that failed: a line with its request, and a count. An attempt that ended
 * because the client left says nothing about the provider; one that this isolate had no room for is shed.
 */
export function attemptFailed(
  run: Run,
  { route, attempts }: Pick<ServingRoute, "route" | "attempts">,
  failure: ProviderFailure,
): void {
  if (failure.kind === "shed") return run.services.sheds.note("bytes", run.id, run.startedMs);
  if (run.timer.clientGone) return;
  const { provider, upstreamId } = route;
  const { status, reason } = wordsOf(failure);
  noteAttempt(run, routeName(provider, upstreamId), { status, failure });
  run.services.tally.count("failedAttempts", { provider, status, reason });
  logWarning("attempt_failed", {
    request_id: run.id,
    provider,
    upstream_id: upstreamId,
    attempt: attempts,
    kind: failure.kind,
    status,
    reason,
  });
}

/** For whoever asks later what happened to the request. */
function noteAttempt(
  { progress, services, startedMs }: Run,
  route: string,
  { status, failure }: { readonly status: string; readonly failure: ProviderFailure },
): void {
  const isOurs = failure.kind === "disabled";
  const told = {
    route,
    why: whyFailed(failure),
    ...(!isOurs && /^\d+$/.test(status) && { status: Number(status) }),
    startedMs: progress.askedMs,
    endedMs: services.now() - startedMs,
  };
  progress.attempts = [...progress.attempts, told];
}

/**
 * A failure as two labels, each of a bounded set: the HTTP status, `none` without one; and our word for what
 * happened, for a bare status what it means to us (`disabled`, `overloaded`, `refused`, `retry`).
 */
export function wordsOf({ kind, reason }: Pick<ProviderFailure, "kind" | "reason">): {
  readonly status: string;
  readonly reason: string;
} {
  const [, word = "", status = ""] = /^([a-z_]{0,40}?)_?(\d{3})?$/.exec(reason) ?? [];
  return { status: statusOf(status), reason: word || kind };
}

function statusOf(status: string): string {
  if (status === "") return "none";
  return STATUSES.has(status) ? status : `${status.slice(0, 1)}xx`;
}
