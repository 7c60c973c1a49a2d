import type { KeySecret, Config } from "../../shared/config/config.ts";
import type { Objects } from "../../shared/contracts/objects.ts";
import type { RevocationItem } from "../../shared/contracts/outbox.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { callObject } from "../../shared/reach-object.ts";
import { revocationsOutboxName } from "../../regions/outbox-schedule.ts";
import type { StoredKey } from "./stored-key.ts";
import { revokeKey } from "./keys.store.ts";
import type { KeyScope } from "../../shared/key.ts";
import type { Region } from "../../shared/regions.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { now } from "../../shared/clock.ts";

const ATTEMPTS = 2;

/** Services for changing keys. */
export type KeyServices = Pick<Objects, "register" | "wallet" | "outbox" | "consoles"> & {
  readonly db: D1Database;
  readonly region: Region;
  readonly peers: readonly Region[];
  readonly keySecrets: readonly KeySecret[];
  readonly now: number;
  readonly actor: Actor;
};

export function createKeyServices(env: Env, config: Config, actor: Actor) {
  return {
    ...objectsOf(env),
    db: env.DB,
    region: config.region,
    peers: config.peers.map(({ region }) => region),
    keySecrets: config.keySecrets,
    now: now(env),
    actor,
  };
}

type EndingKey = Pick<StoredKey, "keyId" | "keyHash" | "orgId" | "scope" | "revokedAt">;

/**
 * Revokes a key in all regions. If the call fails, the key may already be revoked. A retry
 * completes the revocation and keeps the original time.
 */
export async function revokeKeyEverywhere<Key extends EndingKey>(
  services: KeyServices,
  key: Key,
): Promise<Result<Key>> {
  const revokedAt = key.revokedAt ?? services.now;
  const revocation = await revokeInObjects(services, key, revokedAt);
  if (!revocation.ok) return revocation;
  // 2. Queue durable notices. Until a notice arrives, its region checks each request with the home
  // region.
  const item = { keyHash: key.keyHash, revokedAt: revocation.value };
  const notices = await notifyPeersOfRevocations(services, key.scope, [item]);
  if (!notices.ok) return notices;
  // 3. Update D1 for lists, and for key objects that have no data yet.
  const revokedKey = { ...key, revokedAt: revocation.value };
  const fields = { key_id: key.keyId, org_id: key.orgId };
  const revoked = await queryDatabase(
    () => revokeKey(services.db, revokedKey),
    "revocation_not_in_book",
    fields,
  );
  if (revoked.ok) {
    return revoked.value
      ? success(revokedKey)
      : refuse({ kind: "not_found", message: "No such key." });
  }
  // 4. If D1 is unavailable, the key object retries the update.
  return callObject(async () => {
    await services.register(key.keyHash).tellBook();
    return success(revokedKey);
  });
}

/**
 * Revokes a key in its object, then in its wallet. In this order, the result of a concurrent lookup
 * can't reactivate the key.
 */
async function revokeInObjects(
  { register, wallet, actor }: KeyServices,
  { keyId, keyHash, orgId }: EndingKey,
  revokedAt: number,
): Promise<Result<number>> {
  const retryOptions = { attemptsMax: ATTEMPTS };
  const keyObjectCall = await callObject(
    async () => success(await register(keyHash).revoke(revokedAt)),
    retryOptions,
  );
  const walletCall = await callObject(
    () => wallet(orgId).revokeKey(keyHash, revokedAt, { keyId, actor }),
    retryOptions,
  );
  return walletCall.ok ? keyObjectCall : walletCall;
}

export async function notifyPeersOfRevocations(
  { peers, outbox }: Pick<KeyServices, "peers" | "outbox">,
  scope: KeyScope,
  items: readonly RevocationItem[],
): Promise<Result<null>> {
  const calls = (scope === "global" && items.length > 0 ? peers : []).map((peer) =>
    callObject(
      async () => {
        await outbox(revocationsOutboxName(peer)).enqueueRevocations(items);
        return success(null);
      },
      { attemptsMax: ATTEMPTS },
    ),
  );
  return (await Promise.all(calls)).find((notice) => !notice.ok) ?? success(null);
}
