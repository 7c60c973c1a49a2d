import type { KeySecret } from "../config.ts";
import type { Admitted, Region } from "../lib/caller.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { mayRetry, storageFailure } from "../lib/storage-failure.ts";
import type { After } from "../lib/timers.ts";
import { within } from "../lib/within.ts";
import { verifyKey } from "./api-key.ts";
import type { VerifiedKey } from "./api-key.ts";
import { bearerToken } from "./bearer.ts";
import type { Admission } from "./limiter-contract.ts";

/** A limiter that reads its key from a slow book may take this long; then it is our fault, 503. */
const LIMITER_TIMEOUT_MS = 6000;

/** What authentication asks of a key's limiter. */
export type Limiter = { admit(home: Region): Promise<Admission> };

/** What a request's key is verified by. */
export type Verification = {
  /** The `Authorization` header as it came, or null. */
  readonly authorization: string | null;
  readonly keySecrets: readonly KeySecret[];
  /** The region that was called. */
  readonly region: Region;
};

/** Who admits a verified key. */
export type Admitting = {
  /** A fresh stub of the limiter with this name: a stub stays broken after an error. */
  readonly limiter: (keyHash: string) => Limiter;
  /** The request's timers. */
  readonly after?: After;
};

/**
 * What can be said of a request's key without any I/O: shape and tag (`invalid_api_key`), then whether it
 * is a regional key of the other region (`region_mismatch`).
 */
export async function verifyRequest(request: Verification): Promise<Result<VerifiedKey>> {
  const token = bearerToken(request.authorization);
  const key = token === null ? null : await verifyKey(token, request.keySecrets);
  if (key === null) return refuse({ kind: "invalid_api_key" });
  if (key.home !== request.region && key.scope === "regional") {
    return refuse({ kind: "region_mismatch", home: key.home });
  }
  return success(key);
}

/**
 * Who calls and what is left of the key's minute: the verdict of the key's limiter here; at a peer it
 * asks the key's home who a global key is, once. A limiter that cannot answer is `overloaded` or
 * `storage_unavailable`: never a 401, never an admission.
 */
export async function admitKey(
  key: VerifiedKey,
  { limiter, after }: Admitting,
): Promise<Result<Admitted>> {
  try {
    return admitted(key, await within(admit(limiter, key), LIMITER_TIMEOUT_MS, after));
  } catch (error) {
    logWarning("limiter_unreachable", { reason: reasonOf(error) });
    return refuse(storageFailure(error));
  }
}

/** One retry on a fresh stub. A lost answer may have taken a place in the window: never one too many. */
async function admit(
  limiter: Admitting["limiter"],
  { hash, home }: VerifiedKey,
): Promise<Admission> {
  try {
    return await limiter(hash).admit(home);
  } catch (error) {
    if (!mayRetry(error)) throw error;
    return await limiter(hash).admit(home);
  }
}

function admitted(key: VerifiedKey, admission: Admission): Result<Admitted> {
  if (!admission.ok) return refuse(admission.failure);
  return success({
    caller: {
      keyId: admission.keyId,
      keyHash: key.hash,
      orgId: admission.orgId,
      memberId: admission.memberId,
      scope: admission.scope,
      home: key.home,
    },
    rate: {
      limit: admission.limit,
      remaining: admission.remaining,
      resetMs: admission.resetMs,
    },
  });
}
