import * as fc from "fast-check";
import { BUDGET_PERIODS } from "../../src/shared/key-terms.ts";
import type { BudgetPeriod } from "../../src/shared/key-terms.ts";

/** An Idempotency-Key, and a text that stands for the request's body. */
export type Named = { readonly name: string; readonly body: string };
/**
 * The content of a slot's request, the same for each retry. `sure` is the difference between the
 * upper bound of the prompt and the minimum, at most `extra`. `isLimited`: of the key with limits,
 * which has all sessions. `session` is the session's position.
 */
export type Content = {
  readonly least: number;
  readonly extra: number;
  readonly sure: number;
  readonly hasCap: boolean;
  readonly tokens: { readonly least: number; readonly extra: number };
  readonly user: string | null;
  readonly named: Named | null;
  readonly isLimited: boolean;
  readonly session: number | null;
};
export type Command =
  | { kind: "hold" | "void"; slot: number }
  | { kind: "settle"; slot: number; cost: number; tokens: number }
  | { kind: "credit"; reference: number; amount: number }
  | { kind: "end"; session: number }
  | { kind: "tick"; ms: number };

export type Quotas = { daily: number | null; monthly: number | null };
/**
 * The limits of one key: a budget in micro-credits, of a period or permanent, and tokens per
 * minute.
 */
export type KeyLimits = {
  readonly budget: number | null;
  readonly period: BudgetPeriod | null;
  readonly tpm: number | null;
};

/** A session of that key, with its own budget, requests per minute and lifetime. */
export type SessionLimits = {
  readonly budget: number | null;
  readonly rpm: number | null;
  readonly livesMs: number;
};

const SESSIONS = 2;
const SLOTS = 10;
/** 103 s before the end of a year, so that ticks cross a day, a month and a year. */
export const START = Date.UTC(2031, 11, 31, 23, 58, 17);
/** No sum of a few ticks is close to an ID's two minutes, a hold's 20 minutes or midnight. */
const TICKS = [1_000, 47_000, 313_000, 40_000_000];

const slot = fc.nat(SLOTS - 1);
const paidContent: fc.Arbitrary<Content> = fc.record({
  least: fc.nat(30),
  extra: fc.nat(40),
  sure: fc.nat(12),
  hasCap: fc.boolean(),
  tokens: fc.record({ least: fc.nat(9), extra: fc.nat(30) }, { noNullPrototype: true }),
  isLimited: fc.boolean(),
  session: fc.constantFrom(null, null, ...Array.from({ length: SESSIONS }, (_, i) => i)),
  user: fc.constantFrom(null, "a", "b"),
  named: fc.option(
    fc.record(
      { name: fc.constantFrom("x", "y"), body: fc.constantFrom("1", "1", "2") },
      { noNullPrototype: true }, // sent to the object
    ),
    { nil: null, freq: 3 },
  ),
});

const content = paidContent.map((one) =>
  one.session === null ? one : Object.assign(one, { isLimited: true }),
);

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("hold" as const), slot }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("settle" as const),
      slot,
      cost: fc.nat(90),
      tokens: fc.nat(50),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("void" as const), slot }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("credit" as const),
      reference: fc.nat(5),
      amount: fc.integer({ min: -60, max: 200 }).filter((amount) => amount !== 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("tick" as const), ms: fc.constantFrom(...TICKS) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("end" as const), session: fc.nat(SESSIONS - 1) }),
  },
);

const quota = fc.option(fc.nat(120), { nil: null, freq: 3 });

const keyLimits: fc.Arbitrary<KeyLimits> = fc.record({
  budget: fc.option(fc.nat(150), { nil: null, freq: 3 }),
  period: fc.constantFrom(null, ...BUDGET_PERIODS),
  tpm: fc.option(fc.integer({ min: 1, max: 60 }), { nil: null, freq: 2 }),
});

/** Between two sums of ticks, so that no session ends exactly at a request. */
const LIVES_MS = [150_500, 86_400_500, 86_400_500_500];

const sessionLimits: fc.Arbitrary<SessionLimits> = fc.record({
  budget: fc.option(fc.nat(90), { nil: null, freq: 3 }),
  rpm: fc.option(fc.integer({ min: 1, max: 3 }), { nil: null, freq: 2 }),
  livesMs: fc.constantFrom(...LIVES_MS),
});

export type Script = {
  contents: Content[];
  quotas: Quotas;
  key: KeyLimits;
  sessions: SessionLimits[];
  first: number;
  commands: Command[];
};

/**
 * A run: each slot's request, the quotas, one key's limits, a first credit, and the commands. A
 * repeated slot is a duplicate. A void or settlement before its hold is out of order, and one after
 * a long tick is late.
 */
export function script(commandsMax: number): fc.Arbitrary<Script> {
  return fc.record({
    contents: fc.array(content, { minLength: SLOTS, maxLength: SLOTS }),
    quotas: fc.record({ daily: quota, monthly: quota }),
    key: keyLimits,
    sessions: fc.array(sessionLimits, { minLength: SESSIONS, maxLength: SESSIONS }),
    first: fc.integer({ min: 1, max: 300 }),
    commands: fc.array(command, { maxLength: commandsMax, size: "max" }),
  });
}
