import type { KeySecret } from "../../shared/config/config.ts";
import type { Objects } from "../../shared/contracts/objects.ts";
import type { RevocationItem } from "../../shared/contracts/outbox.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { reachObject } from "../../shared/reach-object.ts";
import { revocationsShard } from "../../regions/outbox-schedule.ts";
import type { StoredKey } from "./stored-key.ts";
import { revokeKey } from "./keys.store.ts";
import type { Scope } from "../../shared/key.ts";
import type { Region } from "../../shared/regions.ts";

/** Each asked at most this often, on a stub of its own: a stub stays broken after an error. */
const ATTEMPTS = 2;

/** What calls about a key work with. */
export type KeyServices = Pick<Objects, "register" | "wallet" | "outbox" | "consoles"> & {
  readonly db: D1Database;
  readonly region: Region;
  /** Where a global key works too. */
  readonly peers: readonly Region[];
  readonly keySecrets: readonly KeySecret[];
  /** The request's clock read, Unix ms. */
  readonly now: number;
  /** Who asks for it. */
  readonly actor: Actor;
};

/** What must be known of a key to end it. */
type EndingKey = Pick<StoredKey, "keyId" | "keyHash" | "orgId" | "scope" | "revokedAt">;

/**
 * Ends a key everywhere and answers with the key: from then on no request with it is admitted. Every
 * step runs on every call, whatever the book already says, so that a repeat completes what an earlier
 * call left half done; the first time of revocation stands. `storage_unavailable` or `overloaded`
 * when an object fails: the key may be dead already, a repeat makes it so.
 */
export async function revokeKeyEverywhere<Key extends EndingKey>(
  services: KeyServices,
  key: Key,
): Promise<Result<Key>> {
  const revokedAt = key.revokedAt ?? services.now;
  // 1. The tombstones at home, where it is admitted and where peers ask: the next request is refused.
  const buried = await bury(services, key, revokedAt);
  if (!buried.ok) return buried;
  // 2. The notice to every peer, durable; until it arrives a peer asks here for every request.
  const item = { keyHash: key.keyHash, revokedAt: buried.value };
  const told = await notifyPeers(services, key.scope, [item]);
  if (!told.ok) return told;
  // 3. The book: what lists show, and what a register without a record would learn.
  const gone = { ...key, revokedAt: buried.value };
  const fields = { key_id: key.keyId, org_id: key.orgId };
  const booked = await queryDatabase(
    () => revokeKey(services.db, gone),
    "revocation_not_in_book",
    fields,
  );
  if (booked.ok) {
    return booked.value ? success(gone) : refuse({ kind: "not_found", message: "No such key." });
  }
  // 4. While the book is away the register keeps on telling it: for requests the key is dead already.
  const owed = await reachObject(async () => {
    await services.register(key.keyHash).tellBook();
    return success(gone);
  });
  return owed.unanswered ? refuse(owed.failure) : owed.result;
}

/**
 * In the register, then in the wallet, whatever the register answers: who asks the register before its
 * tombstone is overruled by the wallet's, and who asks after it hears that the key is dead. With the time
 * that the register keeps.
 */
async function bury(
  { register, wallet, actor }: KeyServices,
  { keyId, keyHash, orgId }: EndingKey,
  revokedAt: number,
): Promise<Result<number>> {
  const often = { attemptsMax: ATTEMPTS };
  const inRegister = await reachObject(
    async () => success(await register(keyHash).revoke(revokedAt)),
    often,
  );
  const inWallet = await reachObject(
    () => wallet(orgId).revokeKey(keyHash, revokedAt, { keyId, actor }),
    often,
  );
  if (inWallet.unanswered) return refuse(inWallet.failure);
  if (!inWallet.result.ok) return inWallet.result;
  return inRegister.unanswered ? refuse(inRegister.failure) : inRegister.result;
}

/** Leaves the notices with the outboxes for the peers where a key of this scope works: durable before it answers. */
export async function notifyPeers(
  { peers, outbox }: Pick<KeyServices, "peers" | "outbox">,
  scope: Scope,
  items: readonly RevocationItem[],
): Promise<Result<null>> {
  const tellings = (scope === "global" && items.length > 0 ? peers : []).map((peer) =>
    reachObject(
      async () => {
        await outbox(revocationsShard(peer)).enqueueRevocations(items);
        return success(null);
      },
      { attemptsMax: ATTEMPTS },
    ),
  );
  for (const told of await Promise.all(tellings)) {
    if (told.unanswered) return refuse(told.failure);
    if (!told.result.ok) return told.result; // overloaded: it refused to take the notice
  }
  return success(null);
}
