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

type Vouched = { readonly admitted: Admitted } | { readonly key: VerifiedKey };

/**
 * Requests made internally, for other regions and console sessions. Keyed by identity, so clients can't be in
 * here.
 */
const callers = new WeakMap<Request, Vouched>();

/** Marks a request as admitted. */
export function vouchFor(request: Request, admitted: Admitted): void {
  callers.set(request, { admitted });
}

/** Gives a request a key, as if it had been sent. */
export function vouchForKey(request: Request, key: VerifiedKey): void {
  callers.set(request, { key });
}

/** Returns the internal caller, or undefined for a request from outside. */
export function vouchedCaller(request: Request): Vouched | undefined {
  return callers.get(request);
}

/**
 * Returns another region's global key at home. Unknown, revoked and regional keys are `invalid_api_key`. A
 * repeated `writeId` is `conflict`. Without a secret, only the hash is checked.
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

/** Admits a key without counting, because the other region counted it. */
export function admittedAs(key: Key, called: RequestCredential, home: Region): Admitted {
  const { keyId, orgId, memberId, scope, rpmLimit: limit } = key;
  return {
    caller: { keyId, ...called, orgId, memberId, scope, home },
    rate: { limit, remaining: limit, resetMs: 0 },
    ...((called.shown?.session !== undefined || isLimited(key.terms)) && { isLimited: true }),
  };
}
