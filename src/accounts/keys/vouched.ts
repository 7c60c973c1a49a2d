import { secretOf } from "../../shared/caller.ts";
import type { Admitted, RequestCredential, VerifiedKey } from "../../shared/caller.ts";
import { refuse } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { isLimited } from "../../shared/key-terms.ts";
import type { Key } from "../../shared/key.ts";
import { reachObject } from "../../shared/reach-object.ts";
import { afterTimeout } from "../../shared/timers.ts";
import type { After } from "../../shared/timers.ts";
import type { CallsOf } from "../../shared/contracts/objects.ts";
import type { Region } from "../../shared/regions.ts";

/**
 * What is known of a request that this region makes of itself: `admitted`, who calls and need not be admitted
 * any more, or `key`, whose it is, which must still be admitted.
 */
type Vouched = { readonly admitted: Admitted } | { readonly key: VerifiedKey };

/**
 * Requests that this region makes of itself: for a peer, with the caller that the peer's signature and the key's
 * register vouch for, and for a console's session. Known by identity: nothing that a client can send puts a
 * request in here.
 */
const callers = new WeakMap<Request, Vouched>();

/** From here on `request` counts as admitted. */
export function vouchFor(request: Request, admitted: Admitted): void {
  callers.set(request, { admitted });
}

/** From here on `request` comes with this key: admitted, held and paid for as if it had been sent. */
export function vouchForKey(request: Request, key: VerifiedKey): void {
  callers.set(request, { key });
}

/** Who was vouched for, or undefined for a request from outside. */
export function vouchedCaller(request: Request): Vouched | undefined {
  return callers.get(request);
}

/**
 * Whose global key a peer asks about, at the key's home: unknown, revoked and regional ones are alike
 * `invalid_api_key`. `writeId`: a request that must not be carried out twice; its repeat is `conflict`,
 * so this asks only once then. Of a `keyHash` alone nobody says which secret was shown.
 */
export async function identifyGlobalKey(
  register: CallsOf<"register", "identify">["register"],
  called: RequestCredential | string,
  writeId: string | null = null,
  after: After = afterTimeout,
): Promise<Result<Key>> {
  const [keyHash, secret] =
    typeof called === "string"
      ? [called]
      : [called.keyHash, secretOf(called.keyHash, called.shown)];
  const reached = await reachObject(() => register(keyHash).identify(writeId, secret), {
    attemptsMax: writeId === null ? 2 : 1,
    after,
  });
  if (reached.unanswered) return refuse(reached.failure);
  const { result } = reached;
  const isRegional = result.ok && result.value.scope !== "global";
  return isRegional ? refuse({ kind: "invalid_api_key" }) : result;
}

/** As if the key had been admitted here; its minute is the peer's, so this one is untouched. */
export function admittedAs(key: Key, called: RequestCredential, home: Region): Admitted {
  const { keyId, orgId, memberId, scope, rpmLimit: limit } = key;
  return {
    caller: { keyId, ...called, orgId, memberId, scope, home },
    rate: { limit, remaining: limit, resetMs: 0 },
    ...((called.shown?.session !== undefined || isLimited(key.terms)) && { isLimited: true }),
  };
}
