import { evictOldest } from "./evict-oldest.ts";
import type { TimerFunction } from "./timers.ts";

/**
 * The limit that a request exceeds: the organization's maximum, the isolate's memory for requests,
 * its memory for bodies, or its CPU time.
 */
export type OverloadReason = "organization" | "isolate" | "bytes" | "cpu";

export type InFlightLimits = {
  readonly memoryMax: number;
  readonly organizationMax: number;
  readonly waitMs: number;
  readonly leaseMs: number;
};

type OwnerLoad = { readonly owner: string; requests: number; bytes: number };
type Waiter = {
  readonly slot: RequestSlot;
  readonly bytes: number;
  readonly why: OverloadReason;
  readonly grant: () => void;
};

const KIB = 1024;
/** Bytes of memory per open request, besides its body. Measured: 25 KiB for a stream. */
export const MEMORY_PER_REQUEST = 32 * KIB;
/** Bytes of memory per byte of a body, which exists as bytes, text and values. */
export const MEMORY_PER_BODY_BYTE = 4;
/** Maximum bytes of a body accepted regardless of its organization's share. */
export const SMALL_BODY_BYTES = 64 * KIB;
const WAITERS_MAX = 1024;
const KEYS_MAX = 10_000;
const UNKNOWN_OWNER = "";

/**
 * Divides an isolate's memory among open requests. No organization can use more memory than is
 * still free. Paid requests above this share wait; the organization with the fewest requests goes
 * first.
 */
export class RequestMemoryPool {
  readonly #limits: InFlightLimits;
  readonly #loads = new Map<string, OwnerLoad>();
  readonly #slots = new Set<RequestSlot>();
  readonly #organizations = new Map<string, string>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #compute = new ComputeLimit();
  #bytes = 0;

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  readonly recordDelay = (delayMs: number, nowMs: number): void => {
    this.#compute.recordDelay(delayMs, nowMs, () =>
      Math.max(0, ...[...this.#loads.values()].map(({ requests }) => requests)),
    );
  };

  get total(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#slots.size, bytes: this.#bytes };
  }

  /**
   * Takes a slot, which the caller must release, or returns the exceeded limit. `bytes` is the
   * body's size, 0 if unknown. `owner` identifies a caller without a key.
   */
  take(
    keyHash: string,
    bytes: number,
    nowMs: number,
    owner = this.#ownerOf(keyHash),
  ): RequestSlot | OverloadReason {
    let why = this.#refusal(owner, bytes);
    if (why !== null && this.#releaseLostSlots(nowMs)) why = this.#refusal(owner, bytes);
    if (why !== null) return why;
    const slot = new RequestSlot(this, keyHash, nowMs);
    this.#attach(slot, owner, bytes);
    return slot;
  }

  takeOrWait(
    keyHash: string,
    bytes: number,
    nowMs: number,
    after: TimerFunction,
  ): RequestSlot | OverloadReason | Promise<RequestSlot | OverloadReason> {
    const owner = this.#ownerOf(keyHash);
    const waiters = this.#waiters.get(owner) ?? new Set();
    const [earlier] = waiters;
    const slotOrReason = earlier?.why ?? this.take(keyHash, bytes, nowMs);
    if (typeof slotOrReason !== "string" || this.#limits.waitMs === 0) return slotOrReason;
    if (waiters.size + this.#countWaiters() >= WAITERS_MAX) return slotOrReason;
    const { promise, resolve } = Promise.withResolvers<RequestSlot | OverloadReason>();
    const slot = new RequestSlot(this, keyHash, nowMs);
    const cancel = after(this.#limits.waitMs, () => {
      this.#stopWaiting(owner, waiter);
      resolve(slotOrReason);
    });
    const waiter = { slot, bytes, why: slotOrReason, grant: () => (cancel(), resolve(slot)) };
    this.#waiters.set(owner, waiters.add(waiter));
    return promise;
  }

  assignToOrganization(slot: RequestSlot, orgId: string): OverloadReason | null {
    if (slot.load === null || slot.load.owner === orgId) return null;
    this.#rememberOwner(slot.keyHash, orgId);
    const { bytes } = slot;
    this.#detach(slot);
    const why = this.#refusal(orgId, bytes);
    if (why === null) this.#attach(slot, orgId, bytes);
    else this.#grantWaiting();
    return why;
  }

  grow(slot: RequestSlot, bytes: number): OverloadReason | null {
    if (slot.load === null) return null;
    const others = slot.load.bytes - slot.bytes;
    if (
      !this.#hasMemoryForBody(this.#memoryOf(slot.load.requests, others), slot.bytes + bytes, bytes)
    ) {
      return "bytes";
    }
    this.#addBytes(slot, slot.load, bytes);
    return null;
  }

  dropBody(slot: RequestSlot, keptBytes: number): void {
    if (slot.load === null) return;
    this.#addBytes(slot, slot.load, Math.min(keptBytes - slot.bytes, 0));
    this.#grantWaiting();
  }

  release(slot: RequestSlot): void {
    this.#detach(slot);
    this.#grantWaiting();
  }

  #ownerOf(keyHash: string): string {
    return this.#organizations.get(keyHash) ?? UNKNOWN_OWNER;
  }

  #refusal(owner: string, bytes: number): OverloadReason | null {
    const { organizationMax, memoryMax } = this.#limits;
    const { requests, bytes: bodyBytes } = this.#loads.get(owner) ?? { requests: 0, bytes: 0 };
    if (requests >= organizationMax && owner !== UNKNOWN_OWNER) return "organization";
    const isLimited = owner !== UNKNOWN_OWNER && this.#hasSeveralOwners();
    if (isLimited && requests >= this.#compute.requestsMax) return "cpu";
    const [share, used] = [
      requests * MEMORY_PER_REQUEST,
      this.#memoryOf(this.#slots.size, this.#bytes),
    ];
    if (share + used + MEMORY_PER_REQUEST > memoryMax) return "isolate";
    return this.#hasMemoryForBody(
      share + bodyBytes * MEMORY_PER_BODY_BYTE,
      bytes,
      bytes,
      MEMORY_PER_REQUEST,
    )
      ? null
      : "bytes";
  }

  /**
   * Reports whether several organizations have open requests. Ignores unknown keys, which may
   * belong to one organization.
   */
  #hasSeveralOwners(): boolean {
    return this.#loads.size > (this.#loads.has(UNKNOWN_OWNER) ? 2 : 1);
  }

  #hasMemoryForBody(ownMemory: number, size: number, bytes: number, request = 0): boolean {
    const share = size <= SMALL_BODY_BYTES ? 0 : ownMemory;
    const used = this.#memoryOf(this.#slots.size, this.#bytes + bytes) + request;
    return share + used <= this.#limits.memoryMax;
  }

  #memoryOf(requests: number, bodyBytes: number): number {
    return requests * MEMORY_PER_REQUEST + bodyBytes * MEMORY_PER_BODY_BYTE;
  }

  #countWaiters(): number {
    return [...this.#waiters.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #stopWaiting(owner: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(owner);
    if (waiters?.delete(waiter) === true && waiters.size === 0) this.#waiters.delete(owner);
  }

  #grantWaiting(): void {
    const requests = (owner: string): number => this.#loads.get(owner)?.requests ?? 0;
    let granted = this.#waiters.size;
    while (granted > 0) {
      const owners = [...this.#waiters.keys()].toSorted((a, b) => requests(a) - requests(b));
      granted = owners.filter((owner) => this.#grantOne(owner)).length;
    }
  }

  #grantOne(owner: string): boolean {
    const [waiter] = this.#waiters.get(owner) ?? [];
    if (waiter === undefined || this.#refusal(owner, waiter.bytes) !== null) return false;
    this.#stopWaiting(owner, waiter);
    this.#attach(waiter.slot, owner, waiter.bytes);
    waiter.grant();
    return true;
  }

  #attach(slot: RequestSlot, owner: string, bytes: number): void {
    const load = this.#loads.get(owner) ?? { owner, requests: 0, bytes: 0 };
    if (load.requests === 0) this.#loads.set(owner, load);
    load.requests++;
    this.#slots.add(slot);
    slot.load = load;
    this.#addBytes(slot, load, bytes);
  }

  #detach(slot: RequestSlot): void {
    const { load } = slot;
    if (load === null) return;
    this.#addBytes(slot, load, -slot.bytes);
    slot.load = null;
    this.#slots.delete(slot);
    load.requests--;
    if (load.requests === 0) this.#loads.delete(load.owner);
  }

  #addBytes(slot: RequestSlot, load: OwnerLoad, bytes: number): void {
    slot.bytes += bytes;
    load.bytes += bytes;
    this.#bytes += bytes;
  }

  #rememberOwner(keyHash: string, orgId: string): void {
    evictOldest(this.#organizations, KEYS_MAX);
    this.#organizations.set(keyHash, orgId);
  }

  /**
   * Releases the slots of requests that the platform ended without notice. Reports whether there
   * were any.
   */
  #releaseLostSlots(nowMs: number): boolean {
    const before = this.#slots.size;
    for (const slot of this.#slots) {
      if (nowMs - slot.takenMs < this.#limits.leaseMs) break;
      this.release(slot);
    }
    return this.#slots.size < before;
  }
}

/** An open request's share of the memory. */
export class RequestSlot {
  readonly #requestMemory: RequestMemoryPool;
  readonly keyHash: string;
  readonly takenMs: number;
  load: OwnerLoad | null = null;
  bytes = 0;

  constructor(requestMemory: RequestMemoryPool, keyHash: string, takenMs: number) {
    this.#requestMemory = requestMemory;
    this.keyHash = keyHash;
    this.takenMs = takenMs;
  }

  assignToOrganization(orgId: string): OverloadReason | null {
    return this.#requestMemory.assignToOrganization(this, orgId);
  }

  grow(bytes: number): OverloadReason | null {
    return this.#requestMemory.grow(this, bytes);
  }

  dropBody(keptBytes = 0): void {
    this.#requestMemory.dropBody(this, keptBytes);
  }

  release(): void {
    this.#requestMemory.release(this);
  }
}

/** Mean timer delay (ms) above which the CPU is overloaded. */
const DELAY_MS_MAX = 4;
/** Maximum ms that the mean counts for one timer, so that the mean recovers soon after a stall. */
const COUNTED_DELAY_MS_MAX = 4 * DELAY_MS_MAX;
/** Weight of the newest timer delay in the mean. */
const DELAY_WEIGHT = 1 / 16;
/** Minimum time between changes of the limit, in ms. */
const CHANGE_MS = 100;
const DECREASE = 0.8;
const INCREASE = 1.01;
/** Minimum of the limit. Organizations with fewer open requests are never limited. */
export const COMPUTE_REQUESTS_MIN = 128;

/**
 * Limits each organization's open requests while CPU overload delays timers. The limit falls below
 * the open requests of the largest organization, and rises slowly afterwards.
 */
class ComputeLimit {
  #delayMs = 0;
  #changedMs = 0;
  #requestsMax = Infinity;

  get requestsMax(): number {
    return this.#requestsMax;
  }

  recordDelay(delayMs: number, nowMs: number, largestRequests: () => number): void {
    this.#delayMs += (Math.min(delayMs, COUNTED_DELAY_MS_MAX) - this.#delayMs) * DELAY_WEIGHT;
    if (Math.abs(nowMs - this.#changedMs) < CHANGE_MS) return;
    this.#changedMs = nowMs;
    if (this.#delayMs > DELAY_MS_MAX) {
      const lower = Math.floor(Math.min(this.#requestsMax, largestRequests()) * DECREASE);
      this.#requestsMax = Math.max(COMPUTE_REQUESTS_MIN, lower);
    } else this.#requestsMax = Math.ceil(this.#requestsMax * INCREASE);
  }
}
