import { fnv1a } from "../shared/hash.ts";
import { regionNamed } from "../shared/regions.ts";
import type { Region } from "../shared/regions.ts";

/** Messages that one alarm delivers, and that one request to a peer may carry. */
export const DELIVER_MAX = 100;
/** A message that could not be delivered for this long is parked for an operator, never dropped. */
export const DEAD_LETTER_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
const SHARDS = 16;
const SHARD_NAMES = Array.from({ length: SHARDS }, (_, i) => String(i));

const REVOCATIONS = "revocations";
const BACKOFF_FIRST_MS = 1000;
/** The longest that a message waits for its next attempt. */
export const BACKOFF_MAX_MS = 30_000;

/**
 * How long to wait after the n-th failed attempt (1 is the first): 1 s doubling to 30 s, of which a
 * random half (`random` from 0 to 1) is taken off so that many messages do not come back at once.
 */
export function backoffMs(attempts: number, random: number): number {
  const full = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempts - 1, 16));
  return Math.round(full * (1 - random / 2));
}

/** An organization's outcomes go through so many of the shards, each key's always through one of them. */
const SPREAD = 4;

/** Whose outcome: a key and its organization, by their ids. */
type Owner = { readonly orgId: string; readonly keyId: string };

function shardOf({ orgId, keyId }: Owner): number {
  return (fnv1a(orgId) + (fnv1a(keyId) % SPREAD)) % SHARDS;
}

/** The outbox for outcomes that this region's own wallets could not take at once. */
export function ownShard(owner: Owner): string {
  return `own/${shardOf(owner)}`;
}

/** The outbox for outcomes of holds that the owner's wallet keeps, in its home region `peer`. */
export function peerShard(peer: Region, owner: Owner): string {
  return `${peer}/${shardOf(owner)}`;
}

/** Every outbox that may have outcomes of this organization, whatever the key. */
export function peerShards(peer: Region, orgId: string): readonly string[] {
  const first = fnv1a(orgId);
  return Array.from({ length: SPREAD }, (_, i) => `${peer}/${(first + i) % SHARDS}`);
}

/** The outbox for revocations that `peer` must hear. */
export function revocationsShard(peer: Region): string {
  return `${peer}/${REVOCATIONS}`;
}

/** Every outbox of a region with these peers: whom a sweep pokes and a health check asks. */
export function outboxNames(peers: readonly Region[]): readonly string[] {
  return [...SHARD_NAMES.map((shard) => `own/${shard}`), ...peers.flatMap(peerOutboxNames)];
}

/** Every outbox for this other region. */
export function peerOutboxNames(peer: Region): readonly string[] {
  return [...SHARD_NAMES, REVOCATIONS].map((shard) => `${peer}/${shard}`);
}

/** To whom an outbox of this name delivers what: `peer` null is this region's own wallets. */
export type OutboxTarget =
  | { readonly carries: "outcomes"; readonly peer: Region | null }
  | { readonly carries: "revocations"; readonly peer: Region };

/** Null when no outbox has such a name. */
export function outboxTarget(name: string): OutboxTarget | null {
  const [whose, shard] = name.split("/");
  if (shard === undefined) return null;
  if (whose === "own") return { carries: "outcomes", peer: null };
  const peer = regionNamed(whose);
  if (peer === undefined) return null;
  return { carries: shard === REVOCATIONS ? REVOCATIONS : "outcomes", peer };
}
