import { presentedSecretHash } from "../../shared/caller.ts";
import type { AdmittedRequest, RequestCredential, VerifiedKey } from "../../shared/caller.ts";
import { refuse } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { hasLimits } from "../../shared/key-terms.ts";
import type { Key } from "../../shared/key.ts";
import { callObject } from "../../shared/reach-object.ts";
import { afterTimeout } from "../../shared/timers.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import type { StubGetters } from "../../shared/contracts/objects.ts";
import type { Region } from "../../shared/regions.ts";

type InternalCaller = { readonly admitted: AdmittedRequest } | { readonly key: VerifiedKey };

/**
 * Verified callers of internal requests. Only the gateway adds entries, so clients can't forge
 * them.
 */
export const internalCallers = new WeakMap<Request, InternalCaller>();

/**
 * Returns a global key's data to another region. Fails with `invalid_api_key`, or with `conflict`
 * for a repeated `writeId`. If the credential is only the key's hash, no secret is checked.
 */
export async function identifyGlobalKey(
  register: StubGetters<"register", "identify">["register"],
  credential: RequestCredential | string,
  writeId: string | null = null,
  after: TimerFunction = afterTimeout,
): Promise<Result<Key>> {
  const [keyHash, secret] =
    typeof credential === "string"
      ? [credential]
      : [credential.keyHash, presentedSecretHash(credential.keyHash, credential.shown)];
  const result = await callObject(() => register(keyHash).identify(writeId, secret), {
    attemptsMax: writeId === null ? 2 : 1,
    after,
  });
  const isRegional = result.ok && result.value.scope !== "global";
  return isRegional ? refuse({ kind: "invalid_api_key" }) : result;
}

export function toAdmittedRequest(
  key: Key,
  credential: RequestCredential,
  home: Region,
): AdmittedRequest {
  const { keyId, orgId, memberId, scope, rpmLimit: limit } = key;
  return {
    caller: { keyId, ...credential, orgId, memberId, scope, home },
    rate: { limit, remaining: limit, resetMs: 0 },
    ...((credential.shown?.session !== undefined || hasLimits(key.terms)) && { isLimited: true }),
  };
}
