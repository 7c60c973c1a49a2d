import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  MEMORY_PER_BODY_BYTE,
  RequestMemoryPool,
  MEMORY_PER_REQUEST,
  SMALL_BODY_BYTES,
  COMPUTE_REQUESTS_MIN,
} from "../../src/shared/in-flight.ts";
import type { InFlightLimits, OverloadReason, RequestSlot } from "../../src/shared/in-flight.ts";
import type { TimerFunction } from "../../src/shared/timers.ts";
import { effortFor } from "../effort.ts";

const MIB = 1024 * 1024;
const LIMITS: InFlightLimits = {
  memoryMax: 12 * MEMORY_PER_REQUEST,
  organizationMax: 100,
  waitMs: 2000,
  leaseMs: 1000,
};
/** Memory for 24 MiB of bodies and few requests. */
const BODIES = { memoryMax: 24 * MIB * MEMORY_PER_BODY_BYTE + 8 * MEMORY_PER_REQUEST };

function inFlight(limits: Partial<InFlightLimits> = {}): RequestMemoryPool {
  return new RequestMemoryPool({ ...LIMITS, ...limits });
}

/** Returns the request memory, with each of these keys in a separate organization. */
function roomOf(keys: readonly string[], limits: Partial<InFlightLimits> = {}): RequestMemoryPool {
  const room = inFlight(limits);
  for (const key of keys) introduce(room, key, `of ${key}`);
  return room;
}

/** Takes slots for requests of one key, up to a maximum or until none is left. */
function takeAll(room: RequestMemoryPool, key: string, most = Infinity): RequestSlot[] {
  const slots: RequestSlot[] = [];
  while (slots.length < most) {
    const slot = room.take(key, 0, 0);
    if (typeof slot === "string") break;
    slots.push(slot);
  }
  return slots;
}

/**
 * Takes one slot after the key object has identified the organization of the key, which the isolate
 * caches.
 */
function introduce(room: RequestMemoryPool, key: string, orgId: string): void {
  const slot = room.take(key, 0, 0);
  if (typeof slot === "string") throw new Error("no place to begin with");
  expect(slot.assignToOrganization(orgId)).toBeNull();
  slot.release();
}

/** Records a second of timers that fire `delayMs` late. */
function recordSecond(room: RequestMemoryPool, startMs: number, delayMs: number): void {
  for (let ms = 0; ms < 1000; ms += 10) room.recordDelay(delayMs, startMs + ms);
}

describe("the limiter of concurrent requests", () => {
  it("gives every request a slot while another organization uses half of the slots", () => {
    const room = roomOf(["hot", "a", "b", "c", "d", "e", "f", "g"]);
    expect(takeAll(room, "hot")).toHaveLength(6);
    expect(room.take("hot", 0, 0)).toBe("isolate");
    for (const key of ["a", "b", "c", "d", "e", "f"]) expect(takeAll(room, key, 1)).toHaveLength(1);
    expect(room.take("g", 0, 0)).toBe("isolate");
  });

  it("gives two organizations a third of the slots each if both use as many slots as they can", () => {
    const room = roomOf(["a", "b"]);
    const counts = { a: 0, b: 0 };
    for (let round = 0; round < 20; round++) {
      for (const key of ["a", "b"] as const) {
        if (typeof room.take(key, 0, 0) !== "string") counts[key]++;
      }
    }
    expect(counts).toEqual({ a: 4, b: 4 });
  });

  it("gives all unknown keys together half of the slots, even if an organization's limit is lower", () => {
    const room = roomOf(["known"], { organizationMax: 3 });
    const unseen = Array.from({ length: 20 }, (_, index) => room.take(`unseen${index}`, 0, 0));
    expect(unseen.filter((slot) => typeof slot !== "string")).toHaveLength(6);
    expect(unseen.at(-1)).toBe("isolate");
    expect(takeAll(room, "known")).toHaveLength(3);
  });

  it("limits each organization across all of the organization's keys", () => {
    const room = inFlight({ organizationMax: 3 });
    introduce(room, "one", "org");
    introduce(room, "two", "org");
    expect(takeAll(room, "one", 2)).toHaveLength(2);
    expect(takeAll(room, "two")).toHaveLength(1);
    expect(room.take("two", 0, 0)).toBe("organization");
    expect(typeof room.take("stranger", 0, 0)).toBe("object");
  });

  it("keeps slots for operators, other people and new keys after one person has used up a limit", () => {
    const room = inFlight({ organizationMax: 3 });
    const takeAs = (owner: string): RequestSlot | OverloadReason => room.take("", 0, 0, owner);
    for (let taken = 0; taken < 3; taken++) expect(typeof takeAs("person:1")).toBe("object");
    expect(takeAs("person:1")).toBe("organization");
    expect(typeof takeAs("person:2")).toBe("object");
    expect(typeof takeAs("operators")).toBe("object");
    expect(typeof room.take("new key", 0, 0)).toBe("object");
  });

  it("counts a new key's request toward its organization once the organization is known", () => {
    const room = inFlight({ organizationMax: 1 });
    const first = room.take("one", 0, 0);
    const second = room.take("two", 0, 0);
    if (typeof first === "string" || typeof second === "string") throw new Error("no place");
    expect(first.assignToOrganization("org")).toBeNull();
    expect(second.assignToOrganization("org")).toBe("organization");
    expect(room.total.requests).toBe(1);
    first.release();
    expect(room.total.requests).toBe(0);
  });

  it("stops counting a request after a timeout, because the platform may have ended the request silently", () => {
    const room = roomOf(["hot"], { organizationMax: 2 });
    takeAll(room, "hot");
    expect(room.take("hot", 0, 999)).toBe("organization");
    expect(typeof room.take("hot", 0, 1000)).toBe("object");
    expect(room.total.requests).toBe(1);
  });
});

/** Returns timers that a test fires manually. */
function manualTimers() {
  const due = new Set<() => void>();
  const after: TimerFunction = (_, run) => {
    due.add(run);
    return () => due.delete(run);
  };
  return { after, fire: () => due.forEach((run) => run()), due };
}

describe("a paid request that waits for memory", () => {
  it("gets memory in turn, starting with the organization that has the fewest requests", async () => {
    const room = roomOf(["hot", "a", "b"]);
    const { after, due } = manualTimers();
    const hot = takeAll(room, "hot");
    takeAll(room, "a");
    takeAll(room, "b");
    const served: string[] = [];
    const wait = (key: string, name: string): void => {
      const waiting = room.takeOrWait(key, 0, 0, after);
      expect(waiting).toBeInstanceOf(Promise);
      void Promise.resolve(waiting).then(() => served.push(name));
    };
    for (const name of ["hot 1", "hot 2"]) wait("hot", name);
    wait("b", "b 1");
    for (const slot of hot.splice(0, 2)) slot.release();
    await Promise.resolve();
    await Promise.resolve();
    expect(served).toEqual(["b 1"]);
    for (const slot of hot) slot.release();
    await Promise.resolve();
    await Promise.resolve();
    expect(served).toEqual(["b 1", "hot 1", "hot 2"]);
    expect(due.size).toBe(0);
  });

  it("gets rejected with a reason once the maximum wait is over, and then uses no memory", async () => {
    const room = roomOf(["hot"]);
    const { after, fire } = manualTimers();
    const slots = takeAll(room, "hot");
    const waiting = room.takeOrWait("hot", 0, 0, after);
    fire();
    expect(await waiting).toBe("isolate");
    for (const slot of slots) slot.release();
    expect(room.total.requests).toBe(0);
  });

  it("waits for earlier requests of the organization", () => {
    const room = roomOf(["hot"]);
    const { after } = manualTimers();
    const [first] = takeAll(room, "hot");
    const large = room.takeOrWait("hot", SMALL_BODY_BYTES, 0, after);
    first?.release();
    expect(large).toBeInstanceOf(Promise);
    expect(room.takeOrWait("hot", 0, 0, after)).toBeInstanceOf(Promise);
  });

  it("gets rejected immediately beyond 1,024 waiting requests, half of which one organization can have", () => {
    const room = roomOf(["hot", "other"]);
    const { after } = manualTimers();
    takeAll(room, "hot");
    takeAll(room, "other");
    const waits = (key: string): boolean => room.takeOrWait(key, 0, 0, after) instanceof Promise;
    for (let count = 0; count < 512; count++) expect(waits("hot")).toBe(true);
    expect(waits("hot")).toBe(false);
    expect(waits("other")).toBe(true);
  });

  it("gets rejected immediately if OVERLOAD_WAIT_MS is 0", () => {
    const room = roomOf(["hot"], { waitMs: 0 });
    takeAll(room, "hot");
    expect(room.takeOrWait("hot", 0, 0, manualTimers().after)).toBe("isolate");
  });
});

describe("the memory limit for concurrent request bodies", () => {
  it("accepts a body of the maximum size only if the isolate holds no other body", () => {
    const room = roomOf(["a", "b"], BODIES);
    expect(typeof room.take("a", 20 * MIB, 0)).toBe("object");
    expect(room.take("a", 20 * MIB, 0)).toBe("bytes");
    expect(room.take("b", 5 * MIB, 0)).toBe("bytes");
    expect(typeof room.take("b", 4 * MIB, 0)).toBe("object");
  });

  it("accepts small bodies until memory is full, even from the organization with the most requests", () => {
    const room = inFlight(BODIES);
    room.take("a", 20 * MIB, 0);
    expect(room.take("a", SMALL_BODY_BYTES + 1, 0)).toBe("bytes");
    expect(typeof room.take("a", SMALL_BODY_BYTES, 0)).toBe("object");
  });

  it("counts a body without a declared length by the bytes received so far", () => {
    const room = roomOf(["a", "b"], BODIES);
    const slot = room.take("a", 0, 0);
    if (typeof slot === "string") throw new Error("no place");
    for (let mib = 1; mib <= 20; mib++) expect(slot.grow(MIB)).toBeNull();
    expect(room.total.bytes).toBe(20 * MIB);
    const other = room.take("b", 0, 0);
    if (typeof other === "string") throw new Error("no place");
    expect(other.grow(4 * MIB)).toBeNull();
    expect(other.grow(MIB)).toBe("bytes");
    slot.dropBody();
    expect(other.grow(MIB)).toBeNull();
    expect(room.total).toEqual({ requests: 2, bytes: 5 * MIB });
  });
});

type Step =
  | { readonly do: "take"; readonly key: number; readonly bytes: number }
  | { readonly do: "hand" | "grow" | "drop" | "release"; readonly slot: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("take" as const),
    key: fc.nat(5),
    bytes: fc.oneof(fc.nat(SMALL_BODY_BYTES), fc.nat(20 * MIB)),
  }),
  fc.record({
    do: fc.constantFrom("hand" as const, "grow" as const, "drop" as const, "release" as const),
    slot: fc.nat(20),
  }),
);

describe("a limiter of requests that arrive in any order", () => {
  it("never allows too many concurrent requests, and frees every slot exactly once", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const room = inFlight({ ...BODIES, organizationMax: 5 });
        const live = new Map<RequestSlot, { org: string; bytes: number }>();
        const all: RequestSlot[] = [];
        for (const one of steps) take(room, one, { live, all });
        for (const slot of all) for (let times = 0; times < 2; times++) slot.release();
        expect(room.total).toEqual({ requests: 0, bytes: 0 });
        introduce(room, "after", "of after");
        expect(takeAll(room, "after")).toHaveLength(5);
      }),
      { numRuns: effortFor(500, 20_000) },
    );
  });
});

type SlotsModel = {
  readonly live: Map<RequestSlot, { org: string; bytes: number }>;
  readonly all: RequestSlot[];
};

/** Runs one step, and compares the request memory with a plain list of open requests. */
function take(room: RequestMemoryPool, one: Step, { live, all }: SlotsModel): void {
  if (one.do === "take") {
    const slot = room.take(`key${one.key}`, one.bytes, 0);
    if (typeof slot !== "string") {
      live.set(slot, { org: slot.load?.owner ?? "", bytes: one.bytes });
      all.push(slot);
    }
  } else {
    const slot = all[one.slot];
    if (slot !== undefined) change(slot, one.do, live);
  }
  const bytes = [...live.values()].reduce((sum, known) => sum + known.bytes, 0);
  expect(room.total).toEqual({ requests: live.size, bytes });
  expect(live.size * MEMORY_PER_REQUEST + bytes * MEMORY_PER_BODY_BYTE).toBeLessThanOrEqual(
    BODIES.memoryMax,
  );
  for (const org of ["org0", "org1"]) {
    const mine = [...live.values()].filter((known) => known.org === org);
    expect(mine.length).toBeLessThanOrEqual(5);
  }
}

/** Changes a request of one of six keys, which belong to two organizations. */
function change(
  slot: RequestSlot,
  what: Exclude<Step["do"], "take">,
  live: SlotsModel["live"],
): void {
  const known = live.get(slot);
  const org = `org${Number(slot.keyHash.slice(-1)) % 2}`;
  let refused: OverloadReason | null = null;
  if (what === "release") slot.release();
  else if (what === "drop") slot.dropBody();
  else if (what === "grow") refused = slot.grow(MIB);
  else refused = slot.assignToOrganization(org);
  if (known === undefined) {
    expect(refused).toBeNull(); // the request had ended, so nothing happens
    return;
  }
  if (what === "release" || (what === "hand" && refused !== null)) live.delete(slot);
  else if (what === "hand") known.org = org;
  else if (what === "drop") known.bytes = 0;
  else if (refused === null) known.bytes += MIB;
}

describe("an isolate with an overloaded CPU", () => {
  const ROOM = { memoryMax: 3200 * MEMORY_PER_REQUEST, organizationMax: Infinity };

  it("rejects further requests of the organization with the most requests while other organizations send requests", () => {
    const room = roomOf(["hot", "small"], ROOM);
    takeAll(room, "hot", 1000);
    recordSecond(room, 0, 50);
    expect(takeAll(room, "hot", 1)).toHaveLength(1); // no other organization has requests
    expect(takeAll(room, "small", COMPUTE_REQUESTS_MIN)).toHaveLength(COMPUTE_REQUESTS_MIN);
    expect(room.take("hot", 0, 0)).toBe("cpu");
  });

  it("never rejects an organization with fewer requests than the lowest limit", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1000, noNaN: true })), (delays) => {
        const room = roomOf(["hot", "small"], ROOM);
        takeAll(room, "hot", 1000);
        for (const [second, delayMs] of delays.entries()) {
          recordSecond(room, second * 1000, delayMs);
        }
        const taken = takeAll(room, "small", COMPUTE_REQUESTS_MIN);
        expect(taken).toHaveLength(COMPUTE_REQUESTS_MIN);
      }),
      { numRuns: 30 },
    );
  });

  it("accepts as many requests as before after a single stall", () => {
    const room = roomOf(["hot", "small"], ROOM);
    takeAll(room, "hot", 1000);
    takeAll(room, "small", 1);
    for (let timer = 0; timer < 50; timer++) room.recordDelay(3000, 1000);
    for (let ms = 0; ms < 1000; ms += 3) room.recordDelay(0, 1003 + ms);
    expect(takeAll(room, "hot", 1)).toHaveLength(1);
  });

  it("doesn't treat requests of unknown keys as another organization's requests", () => {
    const room = roomOf(["hot", "small"], ROOM);
    takeAll(room, "hot", 1000);
    takeAll(room, "unseen", 1);
    recordSecond(room, 0, 50);
    expect(takeAll(room, "hot", 1)).toHaveLength(1);
    takeAll(room, "small", 1);
    expect(room.take("hot", 0, 0)).toBe("cpu");
  });

  it("accepts more requests again once its timers run on time", () => {
    const room = roomOf(["hot", "small"], ROOM);
    const hot = takeAll(room, "hot", 1000);
    takeAll(room, "small", 1);
    recordSecond(room, 0, 50);
    for (const slot of hot.slice(200)) slot.release();
    expect(room.take("hot", 0, 0)).toBe("cpu");
    for (let second = 1; second < 20; second++) recordSecond(room, second * 1000, 0);
    expect(takeAll(room, "hot", 100)).toHaveLength(100);
  });
});
