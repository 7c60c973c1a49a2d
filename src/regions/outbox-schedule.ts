import { fnv1a } from "../shared/hash.ts";
import { findRegion } from "../shared/regions.ts";
import type { Region } from "../shared/regions.ts";

export const DELIVERY_BATCH_MAX = 100;
/** Age in ms at which a message is dead-lettered. Messages are never deleted. */
export const DEAD_LETTER_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
const SHARD_COUNT = 16;
const SHARD_NAMES = Array.from({ length: SHARD_COUNT }, (_, i) => String(i));

const REVOCATIONS = "revocations";
const BACKOFF_FIRST_MS = 1000;
export const RETRY_DELAY_MAX_MS = 30_000;

/**
 * Returns the delay in ms: 1 s after the first failure, doubling up to 30 s. `random` (0 to 1)
 * shortens it by up to half.
 */
export function retryDelayMs(attempts: number, random: number): number {
  const full = Math.min(RETRY_DELAY_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempts - 1, 16));
  return Math.round(full * (1 - random / 2));
}

/** Number of shards per organization. All messages of a key use the same shard. */
const SHARDS_PER_ORGANIZATION = 4;

type Owner = { readonly orgId: string; readonly keyId: string };

function shardOf({ orgId, keyId }: Owner): number {
  return (fnv1a(orgId) + (fnv1a(keyId) % SHARDS_PER_ORGANIZATION)) % SHARD_COUNT;
}

/** Returns the name of the outbox for outcomes that this region's wallet couldn't accept. */
export function ownOutboxName(owner: Owner): string {
  return `own/${shardOf(owner)}`;
}

export function peerOutboxName(peer: Region, owner: Owner): string {
  return `${peer}/${shardOf(owner)}`;
}

/** Returns the names of the outboxes that can hold an organization's messages. */
export function peerOutboxNamesOfOrganization(peer: Region, orgId: string): readonly string[] {
  const first = fnv1a(orgId);
  return Array.from(
    { length: SHARDS_PER_ORGANIZATION },
    (_, i) => `${peer}/${(first + i) % SHARD_COUNT}`,
  );
}

export function revocationsOutboxName(peer: Region): string {
  return `${peer}/${REVOCATIONS}`;
}

export function allOutboxNames(peers: readonly Region[]): readonly string[] {
  return [...SHARD_NAMES.map((shard) => `own/${shard}`), ...peers.flatMap(peerOutboxNames)];
}

export function peerOutboxNames(peer: Region): readonly string[] {
  return [...SHARD_NAMES, REVOCATIONS].map((shard) => `${peer}/${shard}`);
}

/** The receiver of an outbox. A null `peer` means this region's own wallets. */
export type OutboxTarget =
  | { readonly carries: "outcomes"; readonly peer: Region | null }
  | { readonly carries: "revocations"; readonly peer: Region };

/** Returns the receiver of the outbox with this name, or null for unknown names. */
export function outboxTarget(name: string): OutboxTarget | null {
  const [owner, shard] = name.split("/");
  if (shard === undefined) return null;
  if (owner === "own") return { carries: "outcomes", peer: null };
  const peer = findRegion(owner);
  if (peer === undefined) return null;
  return { carries: shard === REVOCATIONS ? REVOCATIONS : "outcomes", peer };
}
