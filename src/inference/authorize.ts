import type { PeerConfig } from "../config.ts";
import type { Reached } from "../lib/reach-object.ts";
import { callPeer } from "../regions/peer-call.ts";
import { authorizeBody, readAuthorizeAnswer } from "./authorize-wire.ts";
import type { AuthorizeRequest, Authorized } from "./authorize-wire.ts";

/** Home's answer must come within this, its one retry included: then it is our fault, 503. */
const AUTHORIZE_BUDGET_MS = 2000;

/**
 * Asks a key's home whose it is and for the hold, in one call with one retry under the same id. Home
 * away, slow or talking garbage: `unanswered` with `home_region_unreachable`; whether it holds is then
 * not known.
 */
export async function authorizeAtHome(
  home: PeerConfig | undefined,
  request: AuthorizeRequest,
  at: { readonly requestId: string; readonly now: () => number },
): Promise<Reached<Authorized>> {
  const answer =
    home === undefined
      ? null
      : await callPeer(home, "authorize", authorizeBody(request), {
          ...at,
          budgetMs: AUTHORIZE_BUDGET_MS,
        });
  const result = answer === null ? null : readAuthorizeAnswer(answer.body);
  if (result === null) return { unanswered: true, failure: { kind: "home_region_unreachable" } };
  // Home's own storage failed: its hold may or may not exist, which the void settles.
  const isUnsure = !result.ok && isOwnFault(result.failure.kind);
  return isUnsure ? { unanswered: true, failure: result.failure } : { unanswered: false, result };
}

function isOwnFault(kind: string): boolean {
  return kind === "storage_unavailable" || kind === "overloaded";
}
