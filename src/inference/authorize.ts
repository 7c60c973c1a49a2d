import type { PeerConfig } from "../config.ts";
import type { Result } from "../lib/failure.ts";
import type { Reached } from "../lib/reach-object.ts";
import { homeBudgetMs } from "../regions/home-budget.ts";
import { callPeer } from "../regions/peer-call.ts";
import { authorizeBody, readAuthorizeAnswer } from "./authorize-wire.ts";
import type { AuthorizeRequest, Authorized } from "./authorize-wire.ts";

/**
 * Asks a key's home whose it is and for the hold, in one call with one retry under the same id. Home
 * away, slow or talking garbage: `unanswered` with `home_region_unreachable`; whether it holds is then
 * not known. `spentMs`: what the request has already waited.
 */
export async function authorizeAtHome(
  home: PeerConfig | undefined,
  request: AuthorizeRequest,
  at: { readonly requestId: string; readonly now: () => number; readonly spentMs: number },
): Promise<Reached<Authorized>> {
  const answer =
    home === undefined
      ? null
      : await callPeer(home, "authorize", authorizeBody(request), {
          requestId: at.requestId,
          now: at.now,
          budgetMs: homeBudgetMs(at.spentMs),
        });
  const result = answer === null ? null : readAuthorizeAnswer(answer.body);
  if (result === null || !isFor(request, result)) {
    return { unanswered: true, failure: { kind: "home_region_unreachable" } };
  }
  // Home's own storage failed: its hold may or may not exist, which the void settles.
  const isUnsure = !result.ok && isOwnFault(result.failure.kind);
  return isUnsure ? { unanswered: true, failure: result.failure } : { unanswered: false, result };
}

/** A grant is of what was asked for: anything else is no hold to spend from. */
function isFor({ hold }: AuthorizeRequest, result: Result<Authorized>): boolean {
  if (!result.ok || hold === null) return true;
  const { granted } = result.value;
  return hold.least <= granted && granted <= hold.most;
}

function isOwnFault(kind: string): boolean {
  return kind === "storage_unavailable" || kind === "overloaded";
}
