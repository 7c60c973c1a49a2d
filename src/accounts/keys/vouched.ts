import { secretOf } from "../../shared/caller.ts";
import type { Admitted, RequestCredential, VerifiedKey } from "../../shared/caller.ts";
import { refuse } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { isLimited } from "../../shared/key-terms.ts";
import type { Key } from "../../shared/key.ts";
import { callObjectWithRetries } from "../../shared/reach-object.ts";
import { afterTimeout } from "../../shared/timers.ts";
import type { After } from "../../shared/timers.ts";
import type { CallsOf } from "../../shared/contracts/objects.ts";
import type { Region } from "../../shared/regions.ts";

type Vouched = { readonly admitted: Admitted } | { readonly key: VerifiedKey };

/** Callers of internal requests, by the request object. No client's request can be in this map. */
const callers = new WeakMap<Request, Vouched>();

export function vouchFor(request: Request, admitted: Admitted): void {
  callers.set(request, { admitted });
}

export function vouchForKey(request: Request, key: VerifiedKey): void {
  callers.set(request, { key });
}

export function internalCallerOf(request: Request): Vouched | undefined {
  return callers.get(request);
}

/**
 * Returns the data of a global key for another region. Fails with `invalid_api_key` for other keys,
 * or `conflict` for a repeated `writeId`. If no secret is given, checks only the hash.
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
  const reached = await callObjectWithRetries(() => register(keyHash).identify(writeId, secret), {
    attemptsMax: writeId === null ? 2 : 1,
    after,
  });
  if (reached.unanswered) return refuse(reached.failure);
  const { result } = reached;
  const isRegional = result.ok && result.value.scope !== "global";
  return isRegional ? refuse({ kind: "invalid_api_key" }) : result;
}

export function admittedAs(key: Key, called: RequestCredential, home: Region): Admitted {
  const { keyId, orgId, memberId, scope, rpmLimit: limit } = key;
  return {
    caller: { keyId, ...called, orgId, memberId, scope, home },
    rate: { limit, remaining: limit, resetMs: 0 },
    ...((called.shown?.session !== undefined || isLimited(key.terms)) && { isLimited: true }),
  };
}
