import type { PeerConfig } from "../config.ts";
import type { Reached } from "../lib/reach-object.ts";
import { isStorageFailure } from "../lib/storage-failure.ts";
import { homeBudgetMs } from "../regions/home-budget.ts";
import { callPeer } from "../regions/peer-call.ts";
import { authorizeBody, readAuthorizeAnswer } from "./authorize-wire.ts";
import type { AuthorizeRequest, Authorized } from "./authorize-wire.ts";

/**
 * Asks a key's home whose it is and for the hold, in one call with one retry under the same id. Home
 * away, slow or talking garbage: `unanswered` with `home_region_unreachable`; whether it holds is then
 * not known, nor after its own fault, nor where only the repeat of a lost attempt is refused.
 * `spentMs`: what the request has already waited.
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
  const reached = answer === null ? null : readAuthorizeAnswer(answer.body);
  if (answer === null || reached === null) return AWAY;
  if (reached.unanswered) return reached;
  const { result } = reached;
  if (result.ok) return isFor(request, result.value) ? reached : AWAY;
  const isOpen = request.hold !== null && answer.isRepeat;
  return isOpen || isStorageFailure(result.failure)
    ? { unanswered: true, failure: result.failure }
    : reached;
}

const AWAY = { unanswered: true, failure: { kind: "home_region_unreachable" } } as const;

/** A grant is of what was asked for: anything else is no hold to spend from. */
function isFor({ hold }: AuthorizeRequest, { granted }: Authorized): boolean {
  return hold === null || (hold.least <= granted && granted <= hold.most);
}
