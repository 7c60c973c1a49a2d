import { evictOldest } from "./evict-oldest.ts";

/** Why a request is shed: its organization's share, the isolate's slots, or body bytes. */
export type ShedReason = "organization" | "isolate" | "bytes";

/** The bounds of one isolate: requests, body bytes, and ms after which a slot counts as lost. */
export type InFlightLimits = {
  readonly organizationMax: number;
  readonly isolateMax: number;
  readonly bytesMax: number;
  readonly leaseMs: number;
};

type Load = { readonly owner: string; requests: number; bytes: number };

/** Bodies up to this size only need free capacity, whatever their organization holds. */
export const SMALL_BODY_BYTES = 64 * 1024;
const KEYS_MAX = 10_000;
const UNKNOWN = "";

/**
 * The requests in flight of an isolate, by organization. An organization may hold no more than is still free:
 * alone it gets half, two get a third each, and a small one always finds a slot. Bytes follow the same rule.
 * Known key owners are remembered for rejecting only. Unknown keys share one organization's capacity.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #loads = new Map<string, Load>();
  readonly #slots = new Set<Slot>();
  readonly #organizations = new Map<string, string>();
  #bytes = 0;

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** Returns the requests and body bytes in flight. */
  get total(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#slots.size, bytes: this.#bytes };
  }

  /**
   * Acquires a slot for a key hash and body size (0 if unknown), or returns why not. The caller releases it.
   * `nowMs` is Unix ms. `owner` names a share of its own for callers without a key.
   */
  take(
    keyHash: string,
    bytes: number,
    nowMs: number,
    owner = this.#ownerOf(keyHash),
  ): Slot | ShedReason {
    let why = this.#refusal(owner, bytes);
    if (why !== null && this.#forgetLost(nowMs)) why = this.#refusal(owner, bytes);
    if (why !== null) return why;
    const slot = new Slot(this, keyHash, nowMs);
    this.#slots.add(slot);
    this.#attach(slot, owner, bytes);
    return slot;
  }

  handTo(slot: Slot, orgId: string): ShedReason | null {
    if (slot.load === null || slot.load.owner === orgId) return null;
    this.#remember(slot.keyHash, orgId);
    const { bytes } = slot;
    this.release(slot);
    const why = this.#refusal(orgId, bytes);
    if (why !== null) return why;
    this.#slots.add(slot);
    this.#attach(slot, orgId, bytes);
    return null;
  }

  grow(slot: Slot, more: number): ShedReason | null {
    if (slot.load === null) return null;
    const size = slot.bytes + more;
    if (!this.#hasBytes(slot.load.bytes - slot.bytes, size, more)) return "bytes";
    this.#addBytes(slot, slot.load, more);
    return null;
  }

  dropBody(slot: Slot, kept: number): void {
    if (slot.load !== null) this.#addBytes(slot, slot.load, Math.min(kept - slot.bytes, 0));
  }

  release(slot: Slot): void {
    const { load } = slot;
    if (load === null) return;
    this.#addBytes(slot, load, -slot.bytes);
    slot.load = null;
    this.#slots.delete(slot);
    load.requests--;
    if (load.requests === 0) this.#loads.delete(load.owner);
  }

  #ownerOf(keyHash: string): string {
    return this.#organizations.get(keyHash) ?? UNKNOWN;
  }

  #refusal(owner: string, bytes: number): ShedReason | null {
    const { organizationMax, isolateMax } = this.#limits;
    const load = this.#loads.get(owner);
    const mine = load?.requests ?? 0;
    if (mine >= organizationMax && owner !== UNKNOWN) return "organization";
    if (mine + this.#slots.size >= isolateMax) return "isolate";
    return this.#hasBytes(load?.bytes ?? 0, bytes, bytes) ? null : "bytes";
  }

  /** Reports whether `more` bytes fit for a body of `size`, next to the organization's `mine`. */
  #hasBytes(mine: number, size: number, more: number): boolean {
    const share = size <= SMALL_BODY_BYTES ? 0 : mine;
    return share + this.#bytes + more <= this.#limits.bytesMax;
  }

  #attach(slot: Slot, owner: string, bytes: number): void {
    const load = this.#loads.get(owner) ?? { owner, requests: 0, bytes: 0 };
    if (load.requests === 0) this.#loads.set(owner, load);
    load.requests++;
    slot.load = load;
    this.#addBytes(slot, load, bytes);
  }

  #addBytes(slot: Slot, load: Load, bytes: number): void {
    slot.bytes += bytes;
    load.bytes += bytes;
    this.#bytes += bytes;
  }

  #remember(keyHash: string, orgId: string): void {
    evictOldest(this.#organizations, KEYS_MAX);
    this.#organizations.set(keyHash, orgId);
  }

  /** Reclaims the slots of requests that the platform ended silently. Reports whether there were any. */
  #forgetLost(nowMs: number): boolean {
    const before = this.#slots.size;
    for (const slot of this.#slots) {
      if (nowMs - slot.takenMs < this.#limits.leaseMs) break;
      this.release(slot);
    }
    return this.#slots.size < before;
  }
}

/** The slot of one request. Its fields are for `InFlight` only. */
export class Slot {
  readonly #inFlight: InFlight;
  readonly keyHash: string;
  readonly takenMs: number;
  /** Null once released. */
  load: Load | null = null;
  bytes = 0;

  constructor(inFlight: InFlight, keyHash: string, takenMs: number) {
    this.#inFlight = inFlight;
    this.keyHash = keyHash;
    this.takenMs = takenMs;
  }

  /** Assigns the slot to an organization, or releases it and returns why. */
  handTo(orgId: string): ShedReason | null {
    return this.#inFlight.handTo(this, orgId);
  }

  /** Adds body bytes of undeclared length. Returns "bytes" if they don't fit. */
  grow(more: number): ShedReason | null {
    return this.#inFlight.grow(this, more);
  }

  /** Releases the body except for `kept` bytes. */
  dropBody(kept = 0): void {
    this.#inFlight.dropBody(this, kept);
  }

  release(): void {
    this.#inFlight.release(this);
  }
}
