import * as z from "zod/mini";
import { configOf } from "../../shared/config/config.ts";
import type { PeerConfig } from "../../shared/config/config.ts";
import { now } from "../../shared/clock.ts";
import { mintId } from "../../shared/id.ts";
import type { Key } from "../../shared/key.ts";
import { EMPTY_KEY_TERMS } from "../../shared/key-terms.ts";
import { callPeer } from "../../regions/peer-call.ts";
import type { StoredKey } from "./stored-key.ts";
import { findKeyByHash, saveKeyUse } from "./keys.store.ts";
import type { UsedKeyRecord } from "../../shared/key-uses.store.ts";
import type { Region } from "../../shared/regions.ts";

type FoundKey = Key & Pick<StoredKey, "revokedAt">;

/**
 * The source of a key's data: this region's D1, or a global key's home region. Methods return null
 * for an unknown key, and throw if the source is unavailable.
 */
export type KeyLookup = {
  /** Whether the lookup reads this region's D1. If not, the home region records the key's uses. */
  readonly isLocalDatabase: boolean;
  find(keyHash: string): Promise<FoundKey | null>;
  touch(keyHash: string, usedAt: number): Promise<Omit<UsedKeyRecord, "hash"> | null>;
};

/** The home region returned no valid response in time. */
export class HomeUnreachableError extends Error {}

/** Returns the data source for keys of the region `home`. A null `home` means this region. */
export function createKeyLookup(env: Env, home: Region | null): KeyLookup {
  const parsed = configOf(env);
  if (home === null || (parsed.ok && parsed.config.region === home)) {
    return {
      isLocalDatabase: true,
      find: (keyHash) => findKeyByHash(env.DB, keyHash),
      touch: (keyHash, usedAt) => saveKeyUse(env.DB, keyHash, usedAt),
    };
  }
  const peers = parsed.ok ? parsed.config.peers : [];
  return homeSource(
    peers.find((peer) => peer.region === home),
    () => now(env),
  );
}

const LOOKUP_BUDGET_MS = 2000;

const idSchema = z.string().check(z.minLength(1), z.maxLength(100));
const lookupResponseSchema = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    key_id: idSchema,
    org_id: idSchema,
    member_id: idSchema,
    scope: z.literal("global"),
    rpm_limit: z.int().check(z.minimum(1), z.maximum(1000)),
  }),
  z.object({
    ok: z.literal(false),
    failure: z.object({ kind: z.literal("invalid_api_key") }),
  }),
]);

function homeSource(home: PeerConfig | undefined, clock: () => number): KeyLookup {
  const find = async (keyHash: string): Promise<FoundKey | null> => {
    if (home === undefined) throw new HomeUnreachableError("no such peer is configured");
    const answer = await callPeer(
      home,
      "lookup",
      { key_hash: keyHash },
      { requestId: mintId("req_", clock()), now: clock, budgetMs: LOOKUP_BUDGET_MS },
    );
    const parsed = lookupResponseSchema.safeParse(answer?.body);
    if (!parsed.success) throw new HomeUnreachableError(`${home.region} did not answer`);
    const found = parsed.data;
    if (!found.ok) return null;
    const { key_id: keyId, org_id: orgId, member_id: memberId, scope, rpm_limit: rpmLimit } = found;
    const unknownFields = { terms: EMPTY_KEY_TERMS, secrets: null, revokedAt: null };
    return { keyId, orgId, memberId, scope, rpmLimit, ...unknownFields };
  };
  return { isLocalDatabase: false, find, touch: find };
}
