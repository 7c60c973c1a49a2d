import { evictOldest } from "./evict-oldest.ts";

/**
 * What a request is refused for: its organization has as much in flight as it may have, the isolate has
 * no room that it should get, or the bodies held at once have none for its own.
 */
export type ShedReason = "organization" | "isolate" | "bytes";

/** Bounds of one isolate: requests, bytes of their bodies, and after how many ms a place counts as lost. */
export type InFlightLimits = {
  readonly organizationMax: number;
  readonly isolateMax: number;
  readonly bytesMax: number;
  readonly leaseMs: number;
};

/** What one organization has in flight. */
type Load = { readonly owner: string; requests: number; bytes: number };

/** Bodies up to this take from what is left, whatever else their organization holds: 64 KiB. */
export const SMALL_BODY_BYTES = 64 * 1024;
const KEYS_MAX = 10_000;
/** Who has in flight what no register has named an organization for yet. */
const UNKNOWN = "";

/**
 * The requests that an isolate works on, by organization, and whether one more may come. Beside the
 * bound of each organization, one may have no more in flight than is still free: alone it gets half of
 * the room, two that want everything a third each, and there is always a place for who has least, so
 * that as the room fills the one with most is refused first. Bytes are shared by the same rule.
 *
 * Which organization a key belongs to is remembered once its register has said so; that memory refuses
 * and never admits. Keys of which that is not known share the room of one, but not its bound.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #loads = new Map<string, Load>();
  /** In the order they were taken, or handed to their organization. */
  readonly #slots = new Set<Slot>();
  readonly #organizations = new Map<string, string>();
  #bytes = 0;

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** Requests and body bytes in flight now. */
  get total(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#slots.size, bytes: this.#bytes };
  }

  /**
   * A place for a request with this key (by hash), whose body is `bytes` long, 0 if that is not known; or
   * why there is none. Whoever gets it releases it; `nowMs` is Unix ms.
   */
  take(keyHash: string, bytes: number, nowMs: number): Slot | ShedReason {
    const owner = this.#organizations.get(keyHash) ?? UNKNOWN;
    let why = this.#refusal(owner, bytes);
    if (why !== null && this.#forgetLost(nowMs)) why = this.#refusal(owner, bytes);
    if (why !== null) return why;
    const slot = new Slot(this, keyHash, nowMs);
    this.#slots.add(slot);
    this.#attach(slot, owner, bytes);
    return slot;
  }

  /** `Slot.handTo`. */
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

  /** `Slot.grow`. */
  grow(slot: Slot, more: number): ShedReason | null {
    if (slot.load === null) return null;
    const size = slot.bytes + more;
    if (!this.#hasBytes(slot.load.bytes - slot.bytes, size, more)) return "bytes";
    this.#addBytes(slot, slot.load, more);
    return null;
  }

  /** `Slot.dropBody`. */
  dropBody(slot: Slot, kept: number): void {
    if (slot.load !== null) this.#addBytes(slot, slot.load, Math.min(kept - slot.bytes, 0));
  }

  /** `Slot.release`. */
  release(slot: Slot): void {
    const { load } = slot;
    if (load === null) return;
    this.#addBytes(slot, load, -slot.bytes);
    slot.load = null;
    this.#slots.delete(slot);
    load.requests--;
    if (load.requests === 0) this.#loads.delete(load.owner);
  }

  #refusal(owner: string, bytes: number): ShedReason | null {
    const { organizationMax, isolateMax } = this.#limits;
    const load = this.#loads.get(owner);
    const mine = load?.requests ?? 0;
    if (mine >= organizationMax && owner !== UNKNOWN) return "organization";
    if (mine + this.#slots.size >= isolateMax) return "isolate";
    return this.#hasBytes(load?.bytes ?? 0, bytes, bytes) ? null : "bytes";
  }

  /** Whether `more` bytes fit, of a body that then has `size`, where its organization's others have `mine`. */
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

  /** Takes back the places of requests that the platform ended without a word; whether there were any. */
  #forgetLost(nowMs: number): boolean {
    const before = this.#slots.size;
    for (const slot of this.#slots) {
      if (nowMs - slot.takenMs < this.#limits.leaseMs) break;
      this.release(slot);
    }
    return this.#slots.size < before;
  }
}

/** One request's place. Its fields are for `InFlight` alone. */
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

  /** Whose the request is, from the key's register; or why that organization may have no more: it is released. */
  handTo(orgId: string): ShedReason | null {
    return this.#inFlight.handTo(this, orgId);
  }

  /** So many more bytes of a body whose length was not declared; "bytes" when they do not fit. */
  grow(more: number): ShedReason | null {
    return this.#inFlight.grow(this, more);
  }

  /** Nobody holds the body any more, but for `kept` bytes of it. */
  dropBody(kept = 0): void {
    this.#inFlight.dropBody(this, kept);
  }

  /** The request has ended. Any further call does nothing. */
  release(): void {
    this.#inFlight.release(this);
  }
}
