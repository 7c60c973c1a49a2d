import { fnv1a } from "../shared/hash.ts";
import { regionNamed } from "../shared/regions.ts";
import type { Region } from "../shared/regions.ts";

/** The messages of one alarm, and of one request to a peer. */
export const DELIVER_MAX = 100;
/** The age at which an undelivered message is parked for an operator. None is dropped. */
export const DEAD_LETTER_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
const SHARDS = 16;
const SHARD_NAMES = Array.from({ length: SHARDS }, (_, i) => String(i));

const REVOCATIONS = "revocations";
const BACKOFF_FIRST_MS = 1000;
/** The longest wait for the next attempt. */
export const BACKOFF_MAX_MS = 30_000;

/**
 * Returns the wait in ms after the n-th failure (from 1): 1 s, doubling to 30 s, minus up to half (`random`
 * from 0 to 1) so that messages spread out.
 */
export function backoffMs(attempts: number, random: number): number {
  const full = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempts - 1, 16));
  return Math.round(full * (1 - random / 2));
}

/** The shards of an organization's outcomes. Each key always uses the same one. */
const SPREAD = 4;

/** The owner of an outcome: a key and its organization. */
type Owner = { readonly orgId: string; readonly keyId: string };

function shardOf({ orgId, keyId }: Owner): number {
  return (fnv1a(orgId) + (fnv1a(keyId) % SPREAD)) % SHARDS;
}

/** Returns the outbox for outcomes that this region's wallets couldn't take at once. */
export function ownShard(owner: Owner): string {
  return `own/${shardOf(owner)}`;
}

/** Returns the outbox for outcomes of holds in the home region `peer`. */
export function peerShard(peer: Region, owner: Owner): string {
  return `${peer}/${shardOf(owner)}`;
}

/** Returns every outbox that may have outcomes of this organization. */
export function peerShards(peer: Region, orgId: string): readonly string[] {
  const first = fnv1a(orgId);
  return Array.from({ length: SPREAD }, (_, i) => `${peer}/${(first + i) % SHARDS}`);
}

/** Returns the outbox for revocations to `peer`. */
export function revocationsShard(peer: Region): string {
  return `${peer}/${REVOCATIONS}`;
}

/** Returns every outbox of a region with these peers, for sweeps and health checks. */
export function outboxNames(peers: readonly Region[]): readonly string[] {
  return [...SHARD_NAMES.map((shard) => `own/${shard}`), ...peers.flatMap(peerOutboxNames)];
}

/** Every outbox for this other region. */
export function peerOutboxNames(peer: Region): readonly string[] {
  return [...SHARD_NAMES, REVOCATIONS].map((shard) => `${peer}/${shard}`);
}

/** The target of an outbox: `peer` null is this region's own wallets. */
export type OutboxTarget =
  | { readonly carries: "outcomes"; readonly peer: Region | null }
  | { readonly carries: "revocations"; readonly peer: Region };

/** Returns an outbox's target by name, or null. */
export function outboxTarget(name: string): OutboxTarget | null {
  const [whose, shard] = name.split("/");
  if (shard === undefined) return null;
  if (whose === "own") return { carries: "outcomes", peer: null };
  const peer = regionNamed(whose);
  if (peer === undefined) return null;
  return { carries: shard === REVOCATIONS ? REVOCATIONS : "outcomes", peer };
}
