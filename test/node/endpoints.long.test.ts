import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENDPOINTS } from "../../src/models/endpoints/endpoints.ts";
import {
  endpointBindings,
  ENDPOINT_ROWS,
  NATIVE_ENDPOINT_ROWS,
  streamFlagsOf,
} from "../fixtures/endpoint-table.ts";
import type { EndpointRow } from "../fixtures/endpoint-table.ts";
import { nativeMockScript } from "../fixtures/native-mock.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockProvider } from "../fixtures/openai-mock.ts";
import { Account, sumOf } from "./support/account.ts";
import { call, delivered } from "./support/peer-keys.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

const CREDITS = 1_000_000;
const TEXT = "one two";

let upstream: MockProvider;
let regions: TwoRegions;
beforeAll(async () => {
  upstream = await startMockProvider();
  upstream.script(nativeMockScript);
  regions = await startTwoRegions({ bindings: endpointBindings(upstream.url) });
});
afterAll(() => Promise.all([regions.stop(), upstream.close()]));

/** The region of the request: the key's home region or another one. */
const PLACES = ["home", "away"] as const;
type Place = (typeof PLACES)[number];
const at = (place: Place): TestRegion => (place === "home" ? regions.eu : regions.us);

/** Creates an EU organization with a global key. */
const open = (options: { credits?: number; rpmLimit?: number } = {}): Promise<Account> =>
  Account.open(() => regions.eu, { keyScope: "global", credits: CREDITS, ...options });

type ResponseText = Pick<ReceivedResponse, "headers" | "text">;
type ReceivedResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
};

async function send(
  place: Place,
  key: string,
  { path, body, headers }: { path: string; body?: object; headers?: Record<string, string> },
): Promise<ReceivedResponse> {
  const response = await call(at(place), key, path, {
    ...(body !== undefined && { body }),
    ...(headers !== undefined && { headers }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Returns all charges after no hold or message is pending, and checks the account's figures. */
async function charged(account: Account): Promise<number[]> {
  await delivered(regions.us);
  expect((await account.resolved()).held_micro).toBe(0);
  const rows = await account.ledger();
  const usage = rows.filter(({ kind }) => kind === "usage");
  expect(sumOf(rows)).toBe((await account.fullBalance()).credits_micro);
  return usage.map(({ amount_micro }) => -amount_micro);
}

/** Checks a complete stream with its cost and request ID. */
function expectStream(row: EndpointRow, { headers, text }: ResponseText, cost: number): void {
  expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
  expect(text).toMatch(row.last);
  expect(text).toContain(`"cost_micro":${cost}`);
  expectId(row, { headers, text });
}

function expectWhole(row: EndpointRow, { headers, text }: ResponseText, cost: number): void {
  // a streamed response has its cost at the end
  const reportedCost = headers.get("x-cost-micro") ?? /"cost_micro":(\d+)/.exec(text)?.[1];
  expect(reportedCost).toBe(String(cost));
  expect(row.said(JSON.parse(text) as Record<string, unknown>)).not.toBe("nothing");
  expectId(row, { headers, text });
}

function expectId({ idPrefix }: EndpointRow, { headers, text }: ResponseText): void {
  const id = headers.get("x-request-id")?.slice("req_".length) ?? "no id";
  if (idPrefix !== null) expect(text).toContain(`"${idPrefix}${id}"`);
}

it("the list of tested endpoints contains every paid endpoint", () => {
  expect(ENDPOINT_ROWS.map(({ name, path }) => [name, `/v1${path}`])).toEqual(
    ENDPOINTS.map(({ name, path }) => [name, path]),
  );
});

const ROWS = [...ENDPOINT_ROWS, ...NATIVE_ENDPOINT_ROWS];

describe.each(ROWS)("the endpoint $title", (row: EndpointRow) => {
  const { good, failing, second, breaking, routes } = row.models;
  const { path } = row;
  const shapes = streamFlagsOf(row);
  const cases = PLACES.flatMap((place) => shapes.map((stream) => ({ place, stream })));
  const bodyOf = (model: string, stream = false, user?: string): object =>
    row.body({ model, text: TEXT, stream, ...(user !== undefined && { user }) });

  it.each(cases)(
    "charges a request once, with the same cost in response and receipt: $place, streamed $stream",
    async ({ place, stream }) => {
      const account = await open();
      const { status, headers, text } = await send(place, account.key, {
        path,
        body: bodyOf(good, stream),
      });
      expect([status, text]).toEqual([200, expect.anything()]);
      expect(headers.get("x-route")).toMatch(routes.good);
      expect(headers.get("x-attempts")).toBe("1");
      expect(headers.get("openai-organization")).toBe(account.orgId);
      const costs = await charged(account);
      expect(costs).toHaveLength(1);
      expect(costs[0]).toBeGreaterThan(0);
      const expected = stream ? expectStream : expectWhole;
      expected(row, { headers, text }, costs[0] ?? NaN);
    },
  );

  it.each(cases)(
    "fails over before the first byte: $place, streamed $stream",
    async ({ place, stream }) => {
      const account = await open();
      const body = bodyOf(second, stream);
      const { status, headers } = await send(place, account.key, { path, body });
      expect(status).toBe(200);
      expect(headers.get("x-route")).toBe(routes.second);
      expect(await charged(account)).toHaveLength(1);
    },
  );

  it.each(cases)(
    "returns an error in the endpoint's format without a charge if every route fails: $place, streamed $stream",
    async ({ place, stream }) => {
      const account = await open();
      const body = bodyOf(failing, stream);
      const { status, text } = await send(place, account.key, { path, body });
      expect(status).toBeGreaterThanOrEqual(500);
      expect(row.refusal(JSON.parse(text)).message).not.toBe("");
      expect(await charged(account)).toEqual([]);
    },
  );

  it.runIf(row.streams !== false).each(PLACES)(
    "reports a broken stream in the endpoint's error format, without a charge: %s",
    async (place) => {
      const account = await open();
      const body = bodyOf(breaking, true);
      const { status, text } = await send(place, account.key, { path, body });
      expect(status).toBe(200);
      expect(text).toContain("Hel");
      expect(text).toMatch(row.broken);
      expect(text).not.toMatch(row.last);
      expect(await charged(account)).toEqual([]);
    },
  );

  it.each(cases)(
    "runs a request only once per Idempotency-Key, and rejects a retry in the endpoint's format: $place, streamed $stream",
    async ({ place, stream }) => {
      const account = await open();
      const headers = { "idempotency-key": randomUUID() };
      const body = bodyOf(good, stream);
      expect((await send(place, account.key, { path, body, headers })).status).toBe(200);
      await charged(account);
      const repeat = await send(place, account.key, { path, body, headers });
      expect(repeat.status).toBe(409);
      expect(row.refusal(JSON.parse(repeat.text)).message).toContain("Idempotency-Key");
      expect(await charged(account)).toHaveLength(1);
    },
  );

  it.each(PLACES)("counts usage for the end user in x-end-user: %s", async (place) => {
    const account = await open();
    const user = `u-${randomUUID()}`;
    const headers = { "x-end-user": user };
    const { status } = await send(place, account.key, { path, body: bodyOf(good), headers });
    expect(status).toBe(200);
    const [cost] = await charged(account);
    const spent = (await (await account.call(`/users/${user}`)).json()) as Record<string, number>;
    expect(spent["monthly_spend_dollars"]).toBe((cost ?? NaN) / 1e6);
    await account.call("/users", { external_id: user, daily_quota_dollars: 0 });
    const refused = await send(place, account.key, { path, body: bodyOf(good), headers });
    expect(refused.status).toBe(429);
    expect(row.refusal(JSON.parse(refused.text)).message).toContain("quota");
    expect(await charged(account)).toEqual([cost]);
  });

  it("accepts one end user in the header, the body or both, but rejects two different end users", async () => {
    const account = await open();
    const headers = { "x-end-user": "one" };
    const both = await send("home", account.key, {
      path,
      body: bodyOf(good, false, row.namesUser ? "one" : undefined),
      headers,
    });
    expect(both.status).toBe(200);
    const strange = { "x-end-user": "z".repeat(257) };
    const unknown = await send("home", account.key, { path, body: bodyOf(good), headers: strange });
    expect([unknown.status, unknown.text]).toEqual([400, expect.stringContaining("x-end-user")]);
    if (!row.namesUser) return;
    const two = await send("home", account.key, {
      path,
      body: bodyOf(good, false, "two"),
      headers,
    });
    expect(two.status).toBe(400);
    expect(row.refusal(JSON.parse(two.text)).type).toBe(row.types.badBody);
    expect(await charged(account)).toHaveLength(1);
  });

  it.each(PLACES)(
    "returns an error in the endpoint's format and places no hold for an invalid request: %s",
    async (place) => {
      const account = await open();
      const { key } = account;
      const { types } = row;
      const refused = async (
        status: number,
        type: string,
        request: { key?: string; path?: string; body?: object },
      ) => {
        const got = await send(place, request.key ?? key, { path, body: bodyOf(good), ...request });
        const { type: errorType, message } = row.refusal(JSON.parse(got.text));
        expect([got.status, errorType]).toEqual([status, type]);
        expect(got.headers.get("x-request-id")).toMatch(/^req_/);
        return message;
      };
      await refused(401, types.badKey, { key: "no-key" });
      await refused(404, types.noModel, { body: bodyOf("sandbox/none") });
      for (const [body, named] of row.bad) {
        await refused(400, types.badBody, { body });
        const { text } = await send(place, key, { path, body });
        expect(text).toContain(named);
      }
      const poor = await open({ credits: 0 });
      await refused(402, types.noMoney, { key: poor.key });
      const slow = await open({ rpmLimit: 1 });
      expect((await send(place, slow.key, { path, body: bodyOf(good) })).status).toBe(200);
      await refused(429, types.tooMany, { key: slow.key });
      const other = await call(at(place), key, path);
      expect(other.status).toBe(405);
      expect(row.refusal(await other.json()).message).toContain("POST");
      expect(await charged(account)).toEqual([]);
    },
  );
});
