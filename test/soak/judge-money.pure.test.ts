import { describe, expect, it } from "vitest";
import { judgeBooks, judgeBounds, judgeLedgers } from "../../scripts/soak/judge-money.ts";
import type { EndUser, Estate } from "../../scripts/soak/judge-money.ts";
import { estateOf, idAt } from "./a-run.ts";

const [ID, OTHER] = [idAt(0), idAt(1)];
const SOUND = estateOf([
  [ID, 40],
  [OTHER, 60],
]);

/** The same organisation with one row of its ledger changed. */
function bent(estate: Estate, seq: number, change: object): Estate {
  const ledger = estate.ledger.map((row) => (row.seq === seq ? { ...row, ...change } : row));
  return { ...estate, ledger };
}

describe("sum of the ledger = balance = credits - charges", () => {
  it("is intact in a sound ledger", () => {
    expect(judgeLedgers([SOUND])).toMatchObject({
      broken: [],
      figure: "0 micros off, 1 organisations, 3 rows",
    });
  });

  it.each<[string, Estate, string]>([
    ["a balance one micro above", { ...SOUND, balance: 901 }, "ledger 900, balance 901 micros"],
    ["a charge one micro above", bent(SOUND, 2, { amount_micro: -41 }), "ledger 899, balance 900"],
    ["a credit that nobody granted", { ...SOUND, credited: 999 }, "999 micros were granted"],
    [
      "a running balance one micro off",
      bent(SOUND, 3, { balance_micro: 901 }),
      "row 3 says 901 micros after 960 and -60",
    ],
    ["a row below 0", bent(SOUND, 3, { balance_micro: -1 }), "row 3 is below 0"],
    [
      "a row twice",
      { ...SOUND, ledger: [...SOUND.ledger, ...SOUND.ledger.slice(-1)] },
      "row 3 follows row 3",
    ],
  ])("is broken by %s", (_name, estate, words) => {
    expect(judgeLedgers([SOUND, estate]).broken.join("\n")).toContain(words);
  });
});

describe("home = book", () => {
  it("is broken by a micro in the book, by a book without a row and by what reconciling finds", () => {
    expect(judgeBooks([SOUND]).broken).toEqual([]);
    expect(judgeBooks([{ ...SOUND, book: 899 }]).broken).toEqual([
      "org: wallet 900, book 899 micros",
    ]);
    expect(judgeBooks([{ ...SOUND, book: null }]).broken).toHaveLength(1);
    const differences = ["held: expected 0, found 1"];
    expect(judgeBooks([{ ...SOUND, differences }]).broken).toEqual([
      "org: reconciled held: expected 0, found 1",
    ]);
  });
});

describe("balances never below 0, end users within their quotas", () => {
  const user: EndUser = {
    externalId: "bob",
    dailyQuota: 100,
    monthlyQuota: null,
    dailySpend: 100,
    monthlySpend: 100,
    usageCost: 100,
  };
  const withUser = (change: Partial<EndUser>): Estate => ({
    ...SOUND,
    endUsers: [{ ...user, ...change }],
  });
  const reading = { orgId: "org", balance: 5, held: 5 };

  it("is intact at the quota and at nothing free", () => {
    const { broken, figure } = judgeBounds([reading], [withUser({})]);
    expect(broken).toEqual([]);
    expect(figure).toContain("least balance 5 micros in 1 readings; fullest quota 100.0 % of 1");
  });

  it.each<[string, Parameters<typeof judgeBounds>, string]>([
    ["a balance of -1", [[{ ...reading, balance: -1, held: 0 }], []], "0 held of -1 micros"],
    ["more held than there is", [[{ ...reading, held: 6 }], []], "6 held of 5 micros"],
    [
      "a micro over the day's quota",
      [[], [withUser({ dailySpend: 101, usageCost: 101 })]],
      "spent 101 of 100 micros a day",
    ],
    [
      "a micro over the month's quota",
      [[], [withUser({ monthlyQuota: 99 })]],
      "spent 100 of 99 micros a month",
    ],
    ["spend that no charge explains", [[], [withUser({ usageCost: 99 })]], "spent 100, charged 99"],
  ])("is broken by %s", (_name, given, words) => {
    expect(judgeBounds(...given).broken.join("\n")).toContain(words);
  });
});
