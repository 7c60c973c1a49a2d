import { afterAll, beforeAll, expect, it } from "vitest";
import type { Result } from "../../src/shared/failure.ts";
import type { LedgerPage } from "../../src/shared/contracts/wallet.ts";
import { recordMeasured } from "../measured.ts";
import type { Account } from "./support/account.ts";
import { sumOf } from "./support/account.ts";
import { delivered, openRemoteAccount } from "./support/peer-money.ts";
import { send, sendAll, SHAPES } from "./support/peer-traffic.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const REQUESTS = 900;
const CALLERS = 16;
const ORGANIZATIONS = 12;
/** Some of them run out of credits. */
const CREDITS = [1_000_000, 1_000_000, 2000];

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions({ bindings: { DRAIN_S: "1" } });
});
afterAll(() => regions.stop());

/** Reads an organization's money in micro-credits from every place that stores it. */
async function standingOf(account: Account) {
  const resolved = await account.resolved();
  const rows = await account.ledger();
  const { balance } = await account.published();
  const wallet = (await account.wallet()) as unknown as {
    ledger: (after: number, limit: number) => Promise<Result<LedgerPage>>;
  };
  const page = await wallet.ledger(0, 1000);
  if (!page.ok) throw new Error("a wallet did not answer");
  const paid = rows.filter((row) => row.kind === "usage");
  let estimated = 0;
  for (const { generation_id } of paid) {
    const answer = await account.call(`/generations/${generation_id}`);
    if (((await answer.json()) as { estimated: boolean }).estimated) estimated++;
  }
  return {
    ledgerOff: Math.abs(sumOf(rows) - resolved.credits_micro),
    bookOff: Math.abs((balance ?? NaN) - resolved.credits_micro),
    openHolds: resolved.open_holds,
    shortfall: page.value.rows.reduce((sum, row) => sum + row.absorbedMicro, 0),
    charges: paid.length,
    estimated,
    differences: await account.differences(),
  };
}

it(`ledger, balance and database match after ${REQUESTS} requests of ${ORGANIZATIONS} organizations in both regions`, async () => {
  const accounts: Account[] = [];
  for (let i = 0; i < ORGANIZATIONS; i++) {
    accounts.push(await openRemoteAccount(regions, { credits: CREDITS[i % CREDITS.length] ?? 0 }));
  }
  const outcomes = await sendAll(REQUESTS, CALLERS, (n) => {
    const account = accounts[n % ORGANIZATIONS];
    if (account === undefined) throw new Error("no such organization");
    const turn = Math.floor(n / ORGANIZATIONS);
    const place = Math.floor(turn / SHAPES.length) % 3 === 0 ? regions.us : regions.eu;
    return send(turn, account, place);
  });
  await Promise.all([delivered(regions.us), delivered(regions.eu)]);
  const standings = await Promise.all(accounts.map(standingOf));
  const sum = (name: Exclude<keyof (typeof standings)[number], "differences">): number =>
    standings.reduce((total, one) => total + one[name], 0);
  const off = { ledgerOff: sum("ledgerOff"), bookOff: sum("bookOff"), openHolds: sum("openHolds") };
  const [shortfall, charges, estimated] = [sum("shortfall"), sum("charges"), sum("estimated")];
  recordMeasured({ requests: REQUESTS, organizations: ORGANIZATIONS, ...off });
  recordMeasured({ shortfall, charges, estimated });
  expect({ ...off, shortfall }).toEqual({ ledgerOff: 0, bookOff: 0, openHolds: 0, shortfall: 0 });
  expect(standings.flatMap(({ differences }) => differences)).toEqual([]);
  expect(charges).toBeGreaterThan(REQUESTS / 4);
  expect(outcomes.filter(({ fate }) => fate === "free").length).toBeGreaterThan(0);
});
