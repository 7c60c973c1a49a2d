import { beforeEach, describe, expect, it, vi } from "vitest";
import { addKey, bindingsWith, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { separateIsolate } from "../contract/metrics-client.ts";
import { OverloadFixture, HELLO } from "./overload-fixture.ts";

const OVERLOADED = {
  error: {
    message: "The service is overloaded. Please retry.",
    type: "api_error",
    param: null,
    code: "overloaded",
  },
};
const SHED = /^turnpike_shed_total\{.*$/gm;

let account: Account;
let lines: { readonly event?: string; readonly status?: number; readonly organization?: number }[] =
  [];
beforeEach(async () => {
  lines = [];
  const note = (line: string): void => void lines.push(JSON.parse(line) as object);
  vi.spyOn(console, "log").mockImplementation(note);
  vi.spyOn(console, "warn").mockImplementation(note);
  account = await openAccount();
});

/**
 * Returns a Worker whose only slot for this organization is used by a request that waits for its
 * hold.
 */
async function fullFixture(bindings: Readonly<Record<string, unknown>> = {}) {
  const fixture = new OverloadFixture({ ORGANIZATION_IN_FLIGHT_MAX: "1", ...bindings });
  // The isolate has cached the key from now on.
  expect(await fixture.status({ key: account.key })).toBe(200);
  const goOn = fixture.keepHolds();
  const held = fixture.untilHeld(1);
  const first = fixture.send({ key: account.key });
  await held;
  return { fixture, first, goOn };
}

describe("a paid request beyond the organization's maximum of concurrent requests", () => {
  it("gets a 503 before the gateway calls the key's object, reads the body or holds an amount", async () => {
    const { fixture, first, goOn } = await fullFixture();
    const before = { ...fixture.calls };
    const shed = fixture.send({ key: account.key });
    const response = await shed.response;
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual(OVERLOADED);
    const wait = Number(response.headers.get("retry-after"));
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(30);
    await shed.end();
    expect(shed.request.bodyUsed).toBe(false);
    expect(fixture.calls).toEqual(before);
    goOn();
    expect((await first.response).status).toBe(200);
    await first.end();
    expect(await fixture.status({ key: account.key })).toBe(200);
  });

  it("gets a 503 without a hold once the key's object has identified an unknown key's organization", async () => {
    const { fixture, first, goOn } = await fullFixture();
    const { key } = await addKey(account.orgId, account.memberId);
    const { hold, admit = 0 } = fixture.calls;
    expect(await fixture.status({ key })).toBe(503);
    expect(fixture.calls).toMatchObject({ hold, admit: admit + 1 });
    expect(await fixture.status({ key })).toBe(503);
    expect(fixture.calls).toMatchObject({ hold, admit: admit + 1 });
    goOn();
    await first.end();
    expect(await fixture.status({ key })).toBe(200);
  });

  it("doesn't affect other organizations, free endpoints or the 401 for a forged key", async () => {
    const { fixture, goOn, first } = await fullFixture();
    goOn();
    await first.end();
    const other = await openAccount();
    const release = fixture.keepHolds();
    const [mine, theirs] = [fixture.untilHeld(1), fixture.send({ key: account.key })];
    await mine;
    const both = fixture.untilHeld(1);
    const served = fixture.send({ key: other.key });
    await both;
    expect(await fixture.status({ key: account.key })).toBe(503);
    const balance = await send("/v1/balance", { key: account.key, bindings: fixture.env });
    expect(balance.status).toBe(200);
    const forged = account.key.slice(0, -1) + (account.key.endsWith("a") ? "b" : "a");
    expect(await fixture.status({ key: forged })).toBe(401);
    release();
    for (const request of [theirs, served]) {
      expect((await request.response).status).toBe(200);
      await request.end();
    }
  });

  it("appears in the metrics by reason, and in the log at most once per second", async () => {
    const second = Date.now() + 60_000;
    vi.spyOn(Date, "now").mockImplementation(() => second);
    const region = separateIsolate();
    const { fixture, first, goOn } = await fullFixture({
      LOG_REQUESTS: "failures",
      REGION_METRICS: region.bindings.REGION_METRICS,
    });
    for (let i = 0; i < 50; i++) expect(await fixture.status({ key: account.key })).toBe(503);
    const reportedCounts = (): readonly number[] =>
      lines.filter(({ event }) => event === "requests_shed").map((line) => line.organization ?? 0);
    expect(reportedCounts()).toEqual([1]);
    vi.spyOn(Date, "now").mockImplementation(() => second + 1000);
    expect(await fixture.status({ key: account.key })).toBe(503);
    expect(reportedCounts()).toEqual([1, 50]);
    vi.spyOn(Date, "now").mockImplementation(() => second - 60_000); // the clock stepped back
    expect(await fixture.status({ key: account.key })).toBe(503);
    expect(reportedCounts()).toEqual([1, 50, 1]);
    expect(lines.filter(({ status }) => status === 503)).toEqual([]);
    goOn();
    await first.end();
    const text = await region.metrics();
    expect(text.match(SHED)).toEqual(['turnpike_shed_total{reason="organization"} 52']);
    expect(text).toContain('turnpike_requests_total{route="/v1/chat/completions",status="503"}');
  });

  it("adds a line to the request log if LOG_REQUESTS is all", async () => {
    const { fixture, first, goOn } = await fullFixture({ LOG_REQUESTS: "all" });
    for (let i = 0; i < 3; i++) expect(await fixture.status({ key: account.key })).toBe(503);
    expect(lines.filter(({ status }) => status === 503)).toHaveLength(3);
    goOn();
    await first.end();
  });
});

describe("a paid request that waits for a slot", () => {
  it("runs as soon as another request ends", async () => {
    const { fixture, first, goOn } = await fullFixture({ OVERLOAD_WAIT_MS: "10000" });
    const before = { ...fixture.calls };
    const waiting = fixture.send({ key: account.key });
    goOn();
    await first.end();
    expect((await waiting.response).status).toBe(200);
    await waiting.end();
    expect(fixture.calls["hold"]).toBe((before["hold"] ?? 0) + 1);
    expect(await fixture.status({ key: account.key })).toBe(200);
  });

  it("gets a 503 after OVERLOAD_WAIT_MS, and leaves the slot to a later request", async () => {
    const { fixture, first, goOn } = await fullFixture({ OVERLOAD_WAIT_MS: "50" });
    const before = { ...fixture.calls };
    expect(await fixture.status({ key: account.key })).toBe(503);
    expect(fixture.calls).toEqual(before);
    goOn();
    await first.end();
    expect(await fixture.status({ key: account.key })).toBe(200);
  });
});

it("the Worker rejects invalid overload limits by name at startup", async () => {
  for (const name of ["ORGANIZATION_IN_FLIGHT_MAX", "ISOLATE_MEMORY_MIB_MAX"]) {
    const bindings = bindingsWith({ [name]: "0" });
    const answer = await send("/v1/chat/completions", { key: account.key, body: HELLO, bindings });
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ error: { code: "misconfigured" } });
  }
});
