import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { expect } from "vitest";
import { now } from "../../src/shared/clock.ts";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  evict,
  kindOf,
  MINUTE_MS,
  registerOf,
  setLimit,
  statusOf,
  storedTimes,
} from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { holdOf, settle, valueOf } from "./wallet-fixture.ts";

type Command =
  | { kind: "ask" | "settle"; slot: number }
  | { kind: "flood"; count: number }
  | { kind: "setLimit"; limit: number }
  | { kind: "tick"; ms: number }
  | { kind: "evict" | "revoke" | "revokeHere" };

const SLOTS = 6;
const HOLD = 10;
/** No run takes long enough for a hold to expire. */
const HOLDS_LIVE_MS = 18 * MINUTE_MS;
const slot = fc.nat(SLOTS - 1);
export const limit = fc.integer({ min: 1, max: 6 });
const always = <K extends string>(kind: K) => fc.constant({ kind });
export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant("ask" as const), slot }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("flood" as const),
      count: fc.integer({ min: 2, max: 9 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("settle" as const), slot }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("setLimit" as const), limit }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("tick" as const),
      ms: fc.constantFrom(1, 900, 20_000, 30_000, 59_990, 60_000, 61_000),
    }),
  },
  { weight: 4, arbitrary: always("evict") },
  { weight: 1, arbitrary: fc.oneof(always("revoke"), always("revokeHere")) },
);

function mustBe(actual: unknown, expected: unknown): void {
  expect(actual).toEqual(expected);
}

/** The expected state of a key and its organization's holds, as far as callers can know it. */
export class AdmissionsModel {
  readonly #key: GatedKey;
  #limit: number;
  #isDead = false;
  #times: readonly number[] = [];
  readonly #sent = new Map<number, { request: HoldRequest; until: number }>();
  readonly #open = new Set<string>();
  readonly #closed = new Set<string>();
  #offset = 0;

  constructor(key: GatedKey, rpmLimit: number) {
    this.#key = key;
    this.#limit = rpmLimit;
  }

  async run(one: Command): Promise<void> {
    const { stub, hash } = this.#key;
    if (one.kind === "ask") await this.#ask(this.#requestOf(one.slot));
    else if (one.kind === "flood") await this.#flood(one.count);
    else if (one.kind === "settle") await this.#settle(one.slot);
    else if (one.kind === "tick") this.#tick(one.ms);
    else if (one.kind === "evict") await evict(this.#key);
    else if (one.kind === "setLimit") {
      await setLimit(this.#key, one.limit);
      this.#limit = one.limit;
    } else {
      if (one.kind === "revoke") await registerOf(this.#key).revoke(now(env));
      valueOf(await stub.revokeKey(hash, now(env)));
      this.#isDead = true;
    }
    await this.#check();
  }

  #tick(ms: number): void {
    if (this.#offset + ms < HOLDS_LIVE_MS) shiftClock((this.#offset += ms));
  }

  /** A number that was used before is a retry, or a new request if it is too old for a retry. */
  #requestOf(number: number): HoldRequest {
    const known = this.#sent.get(number);
    if (known !== undefined && now(env) < known.until) return known.request;
    const request = holdOf(HOLD);
    this.#sent.set(number, { request, until: now(env) + 90_000 });
    return request;
  }

  async #ask(request: HoldRequest): Promise<void> {
    const startMs = now(env);
    const before = this.#times.length;
    const { id } = request;
    const isRepeat = this.#open.has(id) || this.#closed.has(id);
    const answer = await this.#key.stub.admitAndHold(this.#key.hash, request);
    await this.#admitted(kindOf(answer), { before, startMs, isRepeat });
    if (answer.ok && answer.value.held.ok && !this.#closed.has(id)) this.#open.add(id);
  }

  /** Checks the result of one request against the key's minute. A retry uses no slot. */
  async #admitted(
    kind: string,
    { before, startMs, isRepeat }: { before: number; startMs: number; isRepeat: boolean },
  ): Promise<void> {
    if (this.#isDead) return mustBe(kind, "invalid_api_key");
    this.#times = await storedTimes(this.#key);
    const taken = this.#times.length - before;
    if (isRepeat) return mustBe([kind, taken], ["admitted", 0]);
    mustBe(taken, kind === "admitted" ? 1 : 0);
    if (kind === "admitted") return this.#withinLimit();
    mustBe(kind, "rate_limited");
    const inTheWay = this.#times.filter((at) => at > startMs - MINUTE_MS);
    mustBe(inTheWay.length >= this.#limit, true);
  }

  /** Counts the window of the newest admission by brute force, under its limit. */
  #withinLimit(): void {
    const last = this.#times.at(-1) ?? 0;
    const minute = this.#times.filter((at) => at > last - MINUTE_MS);
    mustBe(minute.length <= this.#limit, true);
  }

  async #flood(count: number): Promise<void> {
    const requests = Array.from({ length: count }, () => holdOf(HOLD));
    const { stub, hash } = this.#key;
    const before = this.#times.length;
    const answers = await Promise.all(
      requests.map(async ({ id }, i) => {
        const answer = await stub.admitAndHold(hash, requests[i] ?? holdOf(HOLD));
        if (answer.ok && answer.value.held.ok) this.#open.add(id);
        return kindOf(answer);
      }),
    );
    if (this.#isDead) {
      mustBe(new Set(answers), new Set(["invalid_api_key"]));
      return;
    }
    this.#times = await storedTimes(this.#key);
    const admitted = answers.filter((kind) => kind === "admitted").length;
    mustBe(this.#times.length - before, admitted);
    if (admitted > 0) this.#withinLimit();
  }

  async #settle(number: number): Promise<void> {
    const id = this.#sent.get(number)?.request.id;
    if (id === undefined) return;
    const { kind } = valueOf(await settle(this.#key.stub, id, 1));
    if (this.#open.delete(id)) mustBe(kind, "settled");
    if (kind !== "unknown") this.#closed.add(id);
  }

  /** Checks that each open hold belongs to a request that was answered with one. */
  async #check(): Promise<void> {
    const { openHolds, held, admitted } = await statusOf(this.#key);
    mustBe([openHolds, held], [this.#open.size, this.#open.size * HOLD]);
    mustBe(admitted, this.#times.length);
  }
}
