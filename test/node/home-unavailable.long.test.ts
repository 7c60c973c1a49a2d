import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Account, sumOf } from "./support/account.ts";
import type { ChooseFault, RequestFault } from "../fakes/fault-proxy.ts";
import {
  call,
  chat,
  CHAT,
  EVERY_CALL,
  hashOfAccount,
  makeKey,
  openRemoteAccount,
  PAID,
  revoke,
  statusOf,
  waitingAt,
} from "./support/peer-keys.ts";
import { figure } from "./support/figure.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";

const CREDITS = 1_000_000;
/** The contract's limit is 2.5 s. A slow machine gets twice that. */
const PATIENCE_MS = 5000;
const LATE_MS = 3000;
const RELAXED = { timeout: 100_000, interval: 50 };

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions();
  regions.toEu.delayMs = LATE_MS;
});
afterAll(() => regions.stop());
afterEach(() => regions.toEu.set("pass"));

/** A key whose requests all meet the same fault on the way to the home region. */
type Victim = {
  readonly fault: RequestFault;
  readonly isKnown: boolean;
  readonly account: Account;
  readonly hash: string;
};

/** `isKnown`: the US has cached the key, so only holds call the home region. */
async function victimOf(fault: RequestFault, isKnown: boolean): Promise<Victim> {
  const account = await openRemoteAccount(regions);
  if (isKnown) assert.equal(await statusOf(regions.us, account.key), 200);
  return { fault, isKnown, account, hash: await hashOfAccount(regions, account) };
}

/** Applies the key's fault to requests, and drops all outcomes. */
function faultFor(victims: readonly Victim[]): ChooseFault {
  return (operation, body) => {
    if (operation === "outcomes") return "reset-before";
    return victims.find(({ hash }) => body.includes(hash))?.fault ?? "pass";
  };
}

type Refused = { readonly what: string; readonly body: unknown; readonly tookMs: number };

/** Sends every kind of call concurrently with one key in the other region. */
function everyCall({ fault, isKnown, account }: Victim): Promise<Refused[]> {
  const calls = Object.entries(EVERY_CALL).map(async ([name, [path, of]]) => {
    const startedMs = performance.now();
    const response = await call(regions.us, account.key, path, of);
    const body: unknown = await response.json();
    const tookMs = performance.now() - startedMs;
    const what = `${fault}, known ${isKnown}, ${name}: ${response.status}`;
    return { what, body, tookMs };
  });
  return Promise.all(calls);
}

/** Waits until neither an outbox nor the proxy has anything for the home region. */
async function nothingUnderWay(): Promise<void> {
  await expect.poll(() => waitingAt(regions.us), RELAXED).toBe(0);
  await expect.poll(() => regions.toEu.underWay, RELAXED).toBe(0);
}

/** Checks that no hold is open, nothing was charged and all figures agree. */
async function expectUntouched(account: Account): Promise<void> {
  expect(await account.fullBalance()).toMatchObject({ credits_micro: CREDITS, open_holds: 0 });
  expect(sumOf(await account.ledger())).toBe(CREDITS);
  expect(await account.differences()).toEqual([]);
}

const SILENT: readonly RequestFault[] = ["drop", "delay", "lose-reply", "half-open"];
const LOUD: readonly RequestFault[] = ["reset-before", "reset-after", "garbage", "5xx", "redirect"];
/** Faults after which the home region has done the work, although its response was lost. */
const DONE_AT_HOME: ReadonlySet<RequestFault> = new Set(["lose-reply", "half-open", "reset-after"]);

it("a global key's request returns an uncharged 503 in time for each failure of the home region", async () => {
  const faults = [...SILENT, ...LOUD];
  const victims = await Promise.all(
    faults.flatMap((fault) => [victimOf(fault, true), victimOf(fault, false)]),
  );
  await regions.toEu.set(faultFor(victims));
  const refused = (await Promise.all(victims.map(everyCall))).flat();
  expect(refused).toHaveLength(faults.length * 2 * Object.keys(EVERY_CALL).length);
  for (const { what, body, tookMs } of refused) {
    expect(what).toMatch(/: 503$/);
    expect([what, body]).toMatchObject([
      what,
      { error: { type: "api_error", code: "home_region_unreachable" } },
    ]);
    expect(tookMs, what).toBeLessThan(PATIENCE_MS);
  }
  const slowest = Math.max(...refused.map(({ tookMs }) => tookMs));
  figure(`home away: ${refused.length} answers, slowest after ${Math.round(slowest)} ms`);
  for (const { account, fault, isKnown } of victims) {
    if (!isKnown || !DONE_AT_HOME.has(fault)) continue;
    const { open_holds } = await account.fullBalance();
    expect([fault, open_holds]).toEqual([fault, PAID.length]); // holds to release
  }
  await regions.toEu.set("pass");
  await nothingUnderWay();
  await Promise.all(victims.map(({ account }) => expectUntouched(account)));
  const again = await Promise.all(victims.map(({ account }) => farChat(account)));
  expect(new Set(again)).toEqual(new Set([200]));
});

const farChat = ({ key }: Account): Promise<number> =>
  statusOf(regions.us, key, "/chat/completions", CHAT);

it("a request returns 401 and releases the hold if the key is revoked between a lost response and the retry", async () => {
  const account = await openRemoteAccount(regions);
  const key = await makeKey(regions, account.key);
  expect(await chat(regions.us, key)).toBe(200);
  await nothingUnderWay();
  const { credits_micro: credits } = await account.fullBalance();
  let authorizations = 0;
  await regions.toUs.set("refuse"); // the US doesn't learn of the revocation
  await regions.toEu.set((operation) =>
    operation === "authorize" && authorizations++ === 0 ? "lose-reply" : "pass",
  );
  const answer = chat(regions.us, key);
  await expect.poll(async () => (await account.fullBalance()).open_holds, RELAXED).toBe(1);
  expect(await revoke(regions, account.key, key.id)).toBe(200);
  expect([await answer, authorizations]).toEqual([401, 2]);
  await nothingUnderWay();
  const after = await account.fullBalance();
  expect(after).toMatchObject({ credits_micro: credits, held_micro: 0, open_holds: 0 });
  await regions.toUs.set("pass");
});

it("a hold is released even if the home region creates it after the other region has given up", async () => {
  const [early, late] = await Promise.all([victimOf("delay", true), victimOf("lose-reply", true)]);
  const choose = faultFor([early, late]);
  const voids: string[] = [];
  await regions.toEu.set((operation, body) => {
    if (operation !== "outcomes") return choose(operation, body);
    voids.push(body);
    return "pass"; // the void isn't delayed
  });
  const { authorize: before = 0 } = regions.toEu.counts.operations;
  const answers = await Promise.all([early, late].map(({ account }) => farChat(account)));
  expect(answers).toEqual([503, 503]);
  // each is retried once with the same ID
  expect(regions.toEu.counts.operations["authorize"]).toBe(before + 4);
  await nothingUnderWay();
  expect(voids.filter((body) => body.includes(early.account.orgId))).toHaveLength(1);
  expect(voids.filter((body) => body.includes(late.account.orgId))).toHaveLength(1);
  await Promise.all([early, late].map(({ account }) => expectUntouched(account)));
});

it("a global key gets 503 if the home region refuses connections, while regional keys still work", async () => {
  const account = await openRemoteAccount(regions);
  const near = {
    eu: await Account.open(() => regions.eu),
    us: await Account.open(() => regions.us),
  };
  await Promise.all([regions.toEu.set("refuse"), regions.toUs.set("refuse")]);
  const calls = Object.values(EVERY_CALL);
  for (const region of [regions.eu, regions.us]) {
    const { key } = near[region.name];
    const statuses = await Promise.all(calls.map(([path, of]) => statusOf(region, key, path, of)));
    expect(statuses).toEqual([200, 200, 200, 200, 200, 201]);
  }
  const far = await Promise.all(
    calls.map(([path, of]) => statusOf(regions.us, account.key, path, of)),
  );
  expect(new Set(far)).toEqual(new Set([503]));
  await Promise.all([regions.toEu.set("pass"), regions.toUs.set("pass")]);
  await nothingUnderWay();
  await expectUntouched(account);
});
