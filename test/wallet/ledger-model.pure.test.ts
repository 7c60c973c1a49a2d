import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mintId } from "../../src/lib/id.ts";
import { micros } from "../../src/lib/money.ts";
import type { Micros } from "../../src/lib/money.ts";
import { success } from "../../src/lib/failure.ts";
import { addKeySpend, sessionBudget, TokenWindow } from "../../src/wallet/rules/key-limits.ts";
import { decideName, rateWait, refuseDeadSession } from "../../src/wallet/rules/hold-guards.ts";
import { RULES } from "../../src/wallet/rules/ledger.ts";
import type { Books, OpenHold } from "../../src/wallet/rules/ledger.ts";
import type { Budget } from "../../src/wallet/rules/key-limits.ts";
import type { Period } from "../../src/lib/period.ts";
import { LIMITED_KEY } from "./plain-key.ts";
import { NO_CAP } from "../../src/wallet/rules/quota.ts";
import { PLAIN_RULES, PlainWallet } from "./plain-wallet.ts";
import type { PlainRules } from "./plain-wallet.ts";
import { script, START } from "./wallet-commands.ts";
import type { Command, Content, Script } from "./wallet-commands.ts";
import { effort } from "../effort.ts";

/** Grants whatever is asked for. */
class Boundless extends TokenWindow {
  override decide(_limit: number, { most }: { readonly most: number }) {
    return { kind: "granted", tokens: most } as const;
  }
}

/** Leaves what was reserved as it was. */
class Sticky extends TokenWindow {
  override correct(): void {}
}

/** Forgets a second early. */
class Hasty extends TokenWindow {
  override decide(limit: number, ask: Parameters<TokenWindow["decide"]>[1], at: number) {
    return super.decide(limit, ask, at + 14_000);
  }
}

/** Each guard is taken away on three of them. */
const SEEDS = [0, 1000, 2000];
const numRuns = effort(5_000, 300_000);

describe("the ledger's rules, whatever is sent in whatever order", () => {
  it(`never overspend, never charge twice, and leave no hold behind in ${numRuns} runs (I1-I7, L1-L3)`, () => {
    const result = fc.check(
      fc.property(script(40), (one) => run(one, PLAIN_RULES)),
      { numRuns, seed: 20261120 },
    );
    expect(result.failed ? fc.defaultReportMessage(result) : "").toBe("");
    expect(result.numRuns).toBe(numRuns);
  });
});

describe("the model objects when a guard is taken away:", () => {
  const mutants: readonly (readonly [
    guard: string,
    rules: Partial<PlainRules>,
    seed: number,
    breaks: RegExp,
  ])[] = [
    [
      "a repeated hold gets its first answer",
      { recallHold: () => null },
      1,
      /a hold opens once|I1|I3|I5|I6|L2/,
    ],
    [
      "a repeated settle gets its first answer",
      { recallSettle: (known) => (known.state === "settled" ? null : RULES.recallSettle(known)) },
      2,
      /I5/,
    ],
    ["a void that came first leaves a tombstone", { voidLeavesTombstone: false }, 3, /I6/],
    [
      "a charge is at most what is held and free",
      { charge: (cost) => cost },
      4,
      /I2|I4|K1|S1|holds never exceed/,
    ],
    ["a hold fits what is left of the quotas", { quotaLeft: () => NO_CAP }, 5, /I4|half/],
    [
      "spend belongs to its period",
      {
        addSpend: (spend, _period, charged) => ({
          ...spend,
          daily: micros(spend.daily + charged),
          monthly: micros(spend.monthly + charged),
        }),
      },
      6,
      /period/,
    ],
    [
      "a charged request keeps its Idempotency-Key",
      {
        decideName: (holder, body, nowMs) =>
          holder?.state === "settled" ? success(null) : decideName(holder, body, nowMs),
      },
      7,
      /charged once a day/,
    ],
    [
      "two requests of one Idempotency-Key do not run at once",
      {
        decideName: (holder, body, nowMs) =>
          holder?.state === "held" ? success(null) : decideName(holder, body, nowMs),
      },
      8,
      /charged once a day/,
    ],
    [
      "an expired request is voided when another takes its Idempotency-Key",
      {
        decideName: (holder, body, nowMs) => {
          const verdict = decideName(holder, body, nowMs);
          return verdict.ok ? success(null) : verdict;
        },
      },
      9,
      /charged once a day/,
    ],
    [
      "an expired request is not voided by another body under its Idempotency-Key",
      {
        decideName: (holder, body, nowMs) =>
          decideName(holder?.state === "expired" ? { ...holder, body } : holder, body, nowMs),
      },
      9,
      /another body voids nothing/,
    ],
    [
      "a voided request frees its Idempotency-Key",
      {
        decideName: (holder, body, nowMs) =>
          decideName(
            holder?.state === "voided" ? { ...holder, state: "settled" } : holder,
            body,
            nowMs,
          ),
      },
      10,
      /a freed key works again/,
    ],
    [
      "a hold fits what is left of its key's budget",
      { budgetLeft: () => Infinity },
      11,
      /K1|S1|half/,
    ],
    [
      "what a key has spent counts in the budget of its period alone",
      { budgetLeft: (budget, _period, held) => (budget.budgetMicro ?? Infinity) - held },
      12,
      /K1|S1|half/,
    ],
    [
      "open holds count against their key's budget",
      { heldOfKey: () => micros(0) },
      13,
      /K1|S1|half/,
    ],
    [
      "a key's spend belongs to its day, week and month",
      {
        addKeySpend: (spend, period, charged) => ({
          ...addKeySpend(spend, period, charged),
          total: spend.total,
        }),
      },
      14,
      /K1|K3|S1|half/,
    ],
    [
      "a charge of a day that has passed counts in its own day alone",
      {
        addKeySpend: (spend, _period, charged) => ({
          day: { ...spend.day, spent: micros(spend.day.spent + charged) },
          week: { ...spend.week, spent: micros(spend.week.spent + charged) },
          month: { ...spend.month, spent: micros(spend.month.spent + charged) },
          total: micros(spend.total + charged),
        }),
      },
      15,
      /K1|K3|S1|half/,
    ],
    [
      "who names no cap leaves half of what is free",
      { share: (free) => free },
      16,
      /half of what is free/,
    ],
    ["tokens fit what is left of the minute", { tokenWindow: () => new Boundless() }, 17, /K2/],
    ["a charge takes the place of reserved tokens", { tokenWindow: () => new Sticky() }, 18, /K2/],
    ["tokens count for the whole minute", { tokenWindow: () => new Hasty() }, 19, /K2/],
    [
      "a session's own budget bounds it",
      { budgetsOf: ({ budget }) => limiting([budget]) },
      20,
      /S1|half|least and most/,
    ],
    [
      "a session's request counts in its key's budget too",
      { budgetsOf: ({ budget, session }) => limiting([session ?? budget]) },
      21,
      /K1|half|least and most/,
    ],
    [
      "a charge above its hold is within the session's budget",
      { budgetsOf: (of) => ("known" in of ? limiting([of.budget]) : RULES.budgetsOf(of)) },
      22,
      /S1/,
    ],
    [
      "what a session has spent counts in its budget",
      { sessionBudget: (terms, _spent, period) => sessionBudget(terms, micros(0), period) },
      23,
      /S1|half/,
    ],
    [
      "a session's budget is for good",
      { sessionBudget: (...of) => ({ ...sessionBudget(...of), budgetPeriod: "day" }) },
      24,
      /S1|half/,
    ],
    [
      "open holds of a session count against its budget",
      {
        heldOfKey: (books, of, period) =>
          heldOfSome(books, of, period, () => !of.keyId.startsWith("ses_")),
      },
      25,
      /S1|half/,
    ],
    [
      "open holds of a session count against its key's budget",
      {
        heldOfKey: (books, of, period) =>
          heldOfSome(
            books,
            of,
            period,
            ({ session }) => of.keyId.startsWith("ses_") || session === null,
          ),
      },
      26,
      /K1|S1|half/,
    ],
    [
      "open holds of one session do not count against another",
      {
        heldOfKey: (books, of, period) =>
          RULES.heldOfKey(books, { ...of, keyId: LIMITED_KEY }, period),
      },
      27,
      /half|S6/,
    ],
    ["a session that was ended is over", deadBy({ endedAt: null }), 28, /S3/],
    ["a session is over at its time", deadBy({ nowMs: 0 }), 29, /S3/],
    ["a session has so many requests a minute", { rateWait: () => 0 }, 30, /S2/],
    [
      "a session's minute is a whole one",
      { rateWait: (log, limit, nowMs) => rateWait([...log], limit, nowMs + 14_000) },
      31,
      /S2/,
    ],
    [
      "a session's minute has an end",
      { rateWait: (log, limit) => (log.length < limit ? 0 : 1) },
      32,
      /S5/,
    ],
  ];
  it.each(
    mutants.flatMap((one) => SEEDS.map((seed) => [one[0], one[2] + seed, one[1], one[3]] as const)),
  )("%s (seed %i)", (_guard, seed, rules, breaks) => {
    const result = fc.check(
      fc.property(script(40), (one) => run(one, { ...PLAIN_RULES, ...rules })),
      { numRuns: 5_000, seed, endOnFailure: true },
    );
    expect(result.failed).toBe(true);
    expect(String(result.errorInstance)).toMatch(breaks);
  });
});

/** Those that limit. */
function limiting(budgets: readonly (Budget | null)[]): Budget[] {
  return budgets.filter((one) => one !== null).filter((one) => one.budgetMicro !== null);
}

/** What some of a payer's open holds reserve. */
function heldOfSome(
  books: Books,
  { keyId, budgetPeriod }: Pick<Budget, "keyId" | "budgetPeriod">,
  period: Period,
  counts: (hold: OpenHold) => boolean,
): Micros {
  const some = new Set([...(books.holdsByPayer.get(keyId) ?? [])].filter(counts));
  const those = { ...books, holdsByPayer: new Map([[keyId, some]]) };
  return RULES.heldOfKey(those, { keyId, budgetPeriod }, period);
}

function deadBy(here: { readonly endedAt?: null; readonly nowMs?: number }): Partial<PlainRules> {
  return {
    refuseDeadSession: (session, real) => refuseDeadSession(session, { ...real, ...here }),
  };
}

function run(one: Script, rules: PlainRules): void {
  const wallet = new PlainWallet(START, one, rules);
  wallet.credit("first", one.first);
  const ids = new Map<number, string>();
  for (const command of one.commands) {
    apply(wallet, command, { contents: one.contents, ids });
    wallet.check();
  }
  wallet.quiesce();
}

function apply(
  wallet: PlainWallet,
  command: Command,
  sent: { contents: readonly Content[]; ids: Map<number, string> },
): void {
  if (command.kind === "tick") return wallet.tick(command.ms);
  if (command.kind === "end") {
    wallet.end(command.session);
    return;
  }
  if (command.kind === "credit") {
    wallet.credit(`reference ${command.reference}`, command.amount);
    return;
  }
  const id = sent.ids.get(command.slot) ?? mintId("req_", wallet.now);
  sent.ids.set(command.slot, id);
  const content = sent.contents[command.slot];
  if (command.kind === "hold" && content !== undefined) wallet.hold(id, content);
  if (command.kind === "settle") wallet.settle(id, command.cost, command.tokens);
  if (command.kind === "void") wallet.void(id);
}
