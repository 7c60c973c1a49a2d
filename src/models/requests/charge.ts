import { priceAt } from "../catalog/price.ts";
import type { Failure } from "../../shared/failure.ts";
import { NO_USAGE, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { routeName } from "../routing/route-health.ts";
import type { ResponseHead, Receipt } from "../core/endpoint-adapter.ts";
import type { Charge, OpenCall, Outcome, Run, ServingRoute } from "./paid-request.ts";
import { costOf } from "../../shared/cost.ts";
import { hiddenTokens } from "./hidden-thought.ts";
import { billedOutput } from "./hold-bounds.ts";
import { withinHold } from "./unit-charge.ts";

/** The way a stream ended, for its charge. */
export type StreamEnding =
  /** The terminal marker arrived, or usage after every choice finished. */
  | "complete"
  /** The provider disconnected or reported a failure. */
  | "failed"
  /** The provider failed, possibly because of the request. */
  | "provoked"
  /** Our timer ended the stream, or the drain after a disconnect ended. */
  | "stopped";

/** The observed response. `output` counts forwarded tokens. */
type Seen = {
  readonly usage: Usage | null;
  /** Usage reported before the end. Its input is exact; its output is a lower bound. */
  readonly partial?: Usage | null;
  readonly output: number;
  /** Reasoning tokens within `output`. */
  readonly thought?: number;
  readonly finishReason: string | null;
};

/**
 * Returns the charge for a response. Reported usage always counts. Without it, the input and the
 * output so far are charged, marked as estimated, if the response finished, was stopped, failed
 * because of the request or lost its client. Other provider failures are free.
 */
export function chargeFor(
  run: Run,
  route: ServingRoute,
  seen: Seen,
  end: { ending: StreamEnding; readerAway: boolean },
): Outcome {
  const { finishReason, partial = null } = seen;
  // The last partial report of a finished response counts, unless it came near the start.
  const isEnded = end.ending === "complete" || end.ending === "provoked";
  const isWhole = isEnded && partial !== null && !isStale(partial, seen.output);
  const reported = isWhole ? partial : seen.usage;
  if (reported !== null) {
    return priced(run, { route, usage: reported, estimated: false, finishReason });
  }
  if (end.ending === "failed" && !end.readerAway) {
    return { kind: "void", reason: "upstream failed without usage: absorbed" };
  }
  const usage = estimatedUsage(run, route, seen);
  return priced(run, { route, usage, estimated: true, finishReason });
}

function priced(run: Run, charge: Omit<Charge, "kind" | "price" | "cost">): Charge {
  const { route, finishReason } = charge;
  const { prompt: size } = run.request;
  const { usage, estimated } =
    size.units === undefined ? charge : withinHold(charge, size, route.route.price);
  const prompt = promptTokens(usage);
  const price = priceAt(route.route, prompt);
  const { origin, bought } = route.route;
  const cost = costOf(price, usage);
  const paid = { usage, price, cost, estimated, finishReason };
  const more = {
    ...(origin !== undefined && { origin }),
    ...(bought !== undefined && { bought: priceAt(bought, prompt) }),
  };
  return { kind: "settle", route, ...paid, ...more };
}

/**
 * Reports whether partial usage is far below the count. Estimates are never four times too high, so
 * such usage was reported before most of the text.
 */
function isStale(partial: Usage, counted: number): boolean {
  return counted > partial.output * 4 + 16;
}

/**
 * Returns the charge if the client disconnected before anything arrived: the input, and the output
 * that the provider may have generated in the elapsed time.
 */
export function unseenCharge(
  run: Run,
  asked: Omit<ServingRoute, "firstByteMs" | "dropped">,
): Outcome {
  const route: ServingRoute = {
    ...asked,
    dropped: [],
    firstByteMs: run.services.now() - run.startedMs,
  };
  const { mayThink, stream, cap } = run.request;
  const isUnseen = mayThink || !stream;
  const tokens = hiddenTokens(route.firstByteMs - run.progress.askedMs) * (cap?.choices ?? 1);
  const output = isUnseen ? Math.ceil(tokens) : 0;
  const usage = estimatedUsage(run, route, { output, thought: mayThink ? output : 0 });
  return priced(run, { route, usage, estimated: true, finishReason: null });
}

/**
 * Returns the reported or estimated input, and the larger of counted and reported output, within
 * the cap.
 */
function estimatedUsage(
  run: Run,
  route: ServingRoute,
  { output, thought = 0, partial }: Pick<Seen, "output" | "thought" | "partial">,
): Usage {
  const allowed =
    route.cap === null ? 0 : billedOutput(route.route, route.cap, run.request.cap?.choices ?? 1);
  const before = partial ?? { ...NO_USAGE, input: run.request.prompt.likely };
  const most = Math.max(before.output, Math.min(output, allowed));
  return {
    ...before,
    output: most,
    reasoning: Math.max(before.reasoning, Math.min(thought, most)),
  };
}

/** The outcome of a bug before anything is owed. */
export const EXCEPTION: Outcome = { kind: "void", reason: "exception" };

/** Sets the open call. If its charge can't be computed, the previous charge stays. */
export function markOpen({ progress }: Run, open: OpenCall): void {
  const before = progress.open;
  progress.open = {
    close: (failure) => open.close(failure),
    owed() {
      try {
        return open.owed();
      } catch {
        return before?.owed() ?? EXCEPTION;
      }
    },
  };
}

export function withCharge({ id, progress }: Run, failure: Failure, outcome: Outcome): Failure {
  if (outcome.kind === "void") return failure;
  // A charge that wasn't stored is retried later.
  const costMicro = progress.stored === "refused" ? outcome.cost : progress.charged;
  return costMicro === 0 ? failure : { ...failure, charged: { costMicro, generationId: id } };
}

export function headOf({
  id,
  startedMs,
  door,
  request: { model, prompt, keep },
}: Run): ResponseHead {
  return {
    id: door.idPrefix + id.slice("req_".length),
    model: model.id,
    created: Math.floor(startedMs / 1000),
    promptTokens: Math.max(1, prompt.likely),
    keeps: keep !== null,
  };
}

export function receiptOf(
  run: Run,
  { usage, estimated, finishReason, route }: Charge,
  costMicro: number,
): Receipt {
  return {
    ...headOf(run),
    usage,
    costMicro,
    estimated,
    finishReason,
    capLoweredByMoney: isCapLowered(run, route),
    ended: Math.floor(run.services.now() / 1000),
  };
}

/**
 * Returns the headers of every successful paid request: route, attempts, a lowered cap and dropped
 * fields.
 */
export function receiptHeaders(run: Run, route: ServingRoute): Record<string, string> {
  const { provider, upstreamId } = route.route;
  const headers: Record<string, string> = {
    "x-route": routeName(provider, upstreamId),
    "x-attempts": String(route.attempts),
  };
  if (isCapLowered(run, route)) headers["x-granted-max-tokens"] = String(route.cap);
  const dropped = droppedBy(run, route);
  if (dropped.length > 0) headers["x-dropped"] = dropped.join(", ");
  return headers;
}

const DROPPED_MAX = 32;
const WORD_MAX = 64;

function droppedBy({ request }: Run, route: ServingRoute): string[] {
  const { droppedNatively, paramOf } = request;
  const dropped = route.isNative ? droppedNatively : request.dropped;
  if (dropped.length === 0 && route.dropped.length === 0) return [];
  const there = route.dropped.map((field) => (paramOf === undefined ? field : paramOf(field)));
  const all = [...dropped, ...there.filter((param) => param !== null)].map(asHeaderWord);
  return [...new Set(all)].slice(0, DROPPED_MAX);
}

function asHeaderWord(name: string): string {
  return name.slice(0, WORD_MAX).replaceAll(/[^\w.:[\]-]/g, "_");
}

function isCapLowered({ request }: Run, { cap }: ServingRoute): boolean {
  return cap !== null && request.cap !== null && cap < request.cap.whole;
}
