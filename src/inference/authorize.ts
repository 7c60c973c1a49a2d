import type { PeerConfig } from "../config.ts";
import type { Failure, Result } from "../lib/failure.ts";
import type { Reached } from "../lib/reach-object.ts";
import { isStorageFailure } from "../lib/storage-failure.ts";
import { homeBudgetMs } from "../regions/home-budget.ts";
import { callPeer } from "../regions/peer-call.ts";
import type { PeerAnswer } from "../regions/peer-call.ts";
import { authorizeBody, readAuthorizeAnswer } from "./authorize-wire.ts";
import type { AuthorizeRequest, Authorized } from "./authorize-wire.ts";

/**
 * Asks a key's home whose it is and for the hold, in one call with one retry under the same id. Home
 * away, slow or talking garbage: `unanswered` with `home_region_unreachable`; whether it holds is then
 * not known, nor after its own fault, nor where the key died between a lost answer and its repeat.
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
  const result = answer === null ? null : readAuthorizeAnswer(answer.body);
  if (answer === null || result === null || !isFor(request, result)) {
    return { unanswered: true, failure: { kind: "home_region_unreachable" } };
  }
  return !result.ok && mayHold(request, result.failure, answer)
    ? { unanswered: true, failure: result.failure }
    : { unanswered: false, result };
}

/**
 * Whether a refusal leaves open that home holds, which a void settles: its own storage failed; or the key,
 * which is asked for before its wallet, is dead by the repeat of an attempt that may have been granted.
 */
function mayHold(
  { hold }: AuthorizeRequest,
  failure: Failure,
  { isRepeat }: Pick<PeerAnswer, "isRepeat">,
): boolean {
  if (isStorageFailure(failure)) return true;
  return hold !== null && isRepeat && failure.kind === "invalid_api_key";
}

/** A grant is of what was asked for: anything else is no hold to spend from. */
function isFor({ hold }: AuthorizeRequest, result: Result<Authorized>): boolean {
  if (!result.ok || hold === null) return true;
  const { granted } = result.value;
  return hold.least <= granted && granted <= hold.most;
}
