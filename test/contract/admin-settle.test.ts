import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FaultFixture } from "../requests/fault-fixture.ts";
import { GENERATION, holdOf, newId, setClock, valueOf } from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { addCredits, admin, balanceOf, openAccount } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
let wallet: Stub;
beforeEach(async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  account = await openAccount({ credits: 1000 });
  wallet = env.WALLET.getByName(account.orgId);
});
afterEach(() => setClock(null));

const settle = (body: unknown, orgId = account.orgId): Promise<Response> =>
  admin("POST", `/orgs/${orgId}/settle`, body);
/** Returns the log line of an unsaved charge, as models/requests/settle.ts writes it. */
const lineOf = (id: string, cost: number, more: object = {}): Record<string, unknown> => ({
  event: "settlement_unsaved",
  request_id: id,
  org_id: account.orgId,
  cost_micro: cost,
  generation: { ...GENERATION, keyId: account.keyId, ...more },
});

async function placeHold(amount: number): Promise<string> {
  const request = holdOf(amount, { keyId: account.keyId });
  valueOf(await wallet.hold(request));
  return request.id;
}
async function settleAndRead(body: unknown): Promise<unknown> {
  const response = await settle(body);
  expect(response.status).toBe(200);
  return response.json();
}

describe("POST /admin/v1/orgs/{id}/settle", () => {
  it("posts an unsaved charge exactly once when an operator sends the charge's log line", async () => {
    const logged: string[] = [];
    vi.spyOn(console, "log").mockImplementation((line: string) => void logged.push(line));
    const fixture = await new FaultFixture().open();
    vi.spyOn(scheduler, "wait").mockImplementation(async (ms) => {
      fixture.env.CLOCK_OFFSET_MS = String(Number(fixture.env.CLOCK_OFFSET_MS) + ms);
    });
    fixture.faults["settle"] = ["down"];
    fixture.faults["enqueue"] = ["down"];
    const answer = await fixture.ask("sandbox/echo", true);
    const line = logged.find((one) => one.includes("settlement_unsaved")) ?? "";
    const { cost_micro: cost } = JSON.parse(line) as { cost_micro: number };
    expect(await fixture.paid()).toEqual([]);
    const expected = { result: "settled", charged_micro: cost, shortfall_micro: 0 };
    for (let time = 0; time < 3; time++) {
      expect(await (await settle(line, fixture.orgId)).json()).toEqual(expected);
    }
    expect(await fixture.paid()).toEqual([-cost]);
    expect((await fixture.balance()).openHolds).toBe(0);
    const id = answer.headers.get("x-request-id") ?? "";
    const { generation } = valueOf(await env.WALLET.getByName(fixture.orgId).request(id));
    expect(generation?.usage).toMatchObject({ output: 3 });
  });

  it("charges only once for 20 concurrent copies of a log line, and returns the same response to each", async () => {
    const line = lineOf(await placeHold(50), 30);
    const answers = await Promise.all(Array.from({ length: 20 }, () => settleAndRead(line)));
    expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(answers[0]).toEqual({ result: "settled", charged_micro: 30, shortfall_micro: 0 });
    expect(await balanceOf(account.key)).toBe(970);
  });

  it("returns the first response for a repeated call with another cost, and charges nothing more", async () => {
    const id = await placeHold(50);
    const first = await settleAndRead(lineOf(id, 30));
    expect(await settleAndRead(lineOf(id, 45))).toEqual(first);
    expect(await balanceOf(account.key)).toBe(970);
  });

  it("charges an expired hold from the available balance, and absorbs the rest", async () => {
    setClock(Date.now());
    const id = await placeHold(50);
    setClock(Date.now() + 30 * 60_000);
    expect(await settleAndRead(lineOf(id, 1200))).toEqual({
      result: "settled",
      charged_micro: 1000,
      shortfall_micro: 200,
    });
    await addCredits(account.orgId, 500);
    expect(await settleAndRead(lineOf(id, 1200))).toMatchObject({ charged_micro: 1000 });
    expect(await balanceOf(account.key)).toBe(500);
  });

  it("charges nothing for a released hold", async () => {
    const id = await placeHold(50);
    valueOf(await wallet.void(id));
    const voided = { result: "voided", charged_micro: 0, shortfall_micro: 0 };
    expect(await settleAndRead(lineOf(id, 30))).toEqual(voided);
    expect(await settleAndRead(lineOf(id, 30))).toEqual(voided);
    expect(await balanceOf(account.key)).toBe(1000);
  });

  it("charges nothing for a hold of another organization", async () => {
    const unknown = { result: "unknown", charged_micro: 0, shortfall_micro: 0 };
    expect(await settleAndRead(lineOf(newId(), 30))).toEqual(unknown);
    const other = await openAccount();
    const id = await placeHold(50);
    const theirs = { ...lineOf(id, 30), org_id: other.orgId };
    expect(await (await settle(theirs, other.orgId)).json()).toEqual(unknown);
    expect(await balanceOf(other.key)).toBe(1_000_000_000);
    expect(valueOf(await wallet.balance()).openHolds).toBe(1);
  });

  it("requires only three fields, and ignores all other fields", async () => {
    const { request_id, cost_micro, generation } = lineOf(await placeHold(50), 30);
    const otherFields = {
      charged_micro: 1,
      result: "voided",
      late: true,
      seq: 99,
      state: "voided",
    };
    expect(
      await settleAndRead({ request_id, cost_micro, generation, ...otherFields }),
    ).toMatchObject({
      result: "settled",
      charged_micro: 30,
    });
  });

  it("takes the key and end user from the hold instead of from the request", async () => {
    const id = await placeHold(50);
    const stranger = { keyId: "key_0VbbtnxZGhU4ZPPzjn5l243b", externalId: "someone", secret: "x" };
    await settleAndRead(lineOf(id, 30, stranger));
    const generation = valueOf(await wallet.request(id)).generation;
    expect(generation).toMatchObject({ keyId: account.keyId, externalId: null, costMicro: 30 });
    expect(JSON.stringify(generation)).not.toContain("secret");
  });
});
