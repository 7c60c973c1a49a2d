import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { peerOutboxNamesOfOrganization } from "../../src/regions/outbox-schedule.ts";
import type { Account } from "./support/account.ts";
import { delivered, expectAtRest, openRemoteAccount, outboxesOf } from "./support/peer-money.ts";
import { callAt, chatOf, withUsage } from "./support/peer-traffic.ts";
import { killRegion } from "./support/kill-region.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";

const ECHO = chatOf("echo", { input: "once", user: "ann" });
/** A word every 150 ms, which leaves time to cut the link during the stream. */
const SLOW = withUsage(chatOf("slow-stream", { input: "one two three four", user: "ann" }));
const AFTER_HOLDS_END_MS = String(36 * 60_000);

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions();
});
afterAll(() => regions.stop());

let account: Account;
beforeEach(async () => {
  await Promise.all([regions.toEu.set("pass"), regions.toUs.set("pass")]);
  account = await openRemoteAccount(regions);
  // the US has cached the key
  assert.equal((await callAt(regions.us, account, "/models")).status, 200);
});

const inUs = (body: object): Promise<Response> =>
  callAt(regions.us, account, "/chat/completions", body);
const openHolds = async (): Promise<number> => (await account.fullBalance()).open_holds;
const paidIds = async (): Promise<(string | null)[]> =>
  (await account.ledger()).filter(({ kind }) => kind === "usage").map((row) => row.generation_id);

/** Starts a stream in the US. `rest` reads it to its end. */
async function startStream() {
  const response = await inUs(SLOW);
  assert.equal(response.status, 200);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  const read = async (enough: () => boolean): Promise<void> => {
    while (!enough()) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
    }
  };
  await read(() => text.includes('"content":"'));
  return {
    id: response.headers.get("x-request-id") ?? "",
    rest: async () => {
      await read(() => false);
      return { text, cost: Number(/"cost_micro":(\d+)/.exec(text)?.[1]) };
    },
  };
}

describe("a connection between regions that is cut during a request", () => {
  it("doesn't interrupt the stream, which is charged once after the connection is restored", async () => {
    const { id, rest } = await startStream();
    await regions.toEu.set("refuse");
    const { text, cost } = await rest();
    const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
    expect(words).toBe("one two three four one two three four");
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect((await outboxesOf(regions.us)).waiting).toBe(1);
    expect(await openHolds()).toBe(1);
    expect(await paidIds()).toEqual([]);
    await regions.toEu.set("pass");
    await delivered(regions.us);
    expect(await expectAtRest(account)).toEqual(new Map([[id, cost]]));
  });

  it("finally results in one charge at home and an empty outbox, even if replies are lost", async () => {
    const { id, rest } = await startStream();
    await regions.toEu.set("reset-after");
    const { cost } = await rest();
    const before = regions.toEu.counts.forwarded;
    await expect.poll(() => regions.toEu.counts.forwarded).toBe(before + 2);
    expect((await outboxesOf(regions.us)).waiting).toBe(1);
    expect(await expectAtRest(account)).toEqual(new Map([[id, cost]]));
    await regions.toEu.set("pass");
    await delivered(regions.us);
    expect(await expectAtRest(account)).toEqual(new Map([[id, cost]]));
  });
});

describe("a connection between regions that loses every reply", () => {
  it.each(["reset-after", "lose-reply"] as const)(
    "causes a 503, and the single hold that both attempts share is released: %s",
    async (fault) => {
      await regions.toEu.set(fault);
      const refused = await inUs(ECHO);
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({ error: { code: "home_region_unreachable" } });
      await expect.poll(openHolds).toBe(0);
      expect((await outboxesOf(regions.us)).waiting).toBe(1);
      expect((await expectAtRest(account)).size).toBe(0);
      await regions.toEu.set("pass");
      await delivered(regions.us);
      expect((await expectAtRest(account)).size).toBe(0);
      expect((await inUs(ECHO)).status).toBe(200);
      await delivered(regions.us); // nothing is waiting when the link is cut again
    },
  );
});

describe("a duplicated message between the regions", () => {
  it("takes effect only once, for holds, charges, releases, reads, writes and revocations", async () => {
    await Promise.all([regions.toEu.set("duplicate"), regions.toUs.set("duplicate")]);
    const { toEu, toUs } = regions;
    const before = { eu: { ...toEu.counts }, us: { ...toUs.counts } };
    const costs = new Map<string, number>();
    for (let i = 0; i < 10; i++) {
      const answer = await inUs(ECHO);
      costs.set(
        answer.headers.get("x-request-id") ?? "",
        Number(answer.headers.get("x-cost-micro")),
      );
      expect((await inUs(chatOf("status-500", { input: "no", user: "bob" }))).status).toBe(502);
    }
    const response = await callAt(regions.us, account, "/keys", { name: "twice", scope: "global" });
    expect(response.status).toBe(201);
    const { id, key } = (await response.json()) as { id: string; key: string };
    const user = { external_id: "cy", daily_quota_dollars: 2 };
    expect((await callAt(regions.us, account, "/users", user)).status).toBe(201);
    const headers = { authorization: `Bearer ${key}` };
    const gone = await fetch(`${regions.us.baseUrl}/keys/${id}`, { method: "DELETE", headers });
    expect(gone.status).toBe(200);
    await Promise.all([delivered(regions.us), delivered(regions.eu)]);
    expect((await fetch(`${regions.us.baseUrl}/models`, { headers })).status).toBe(401);
    expect(await expectAtRest(account)).toEqual(costs);
    const { keys } = (await (await account.call("/keys")).json()) as { keys: { name: string }[] };
    expect(keys.filter(({ name }) => name === "twice")).toHaveLength(1);
    for (const [now, then] of [
      [toEu.counts, before.eu],
      [toUs.counts, before.us],
    ] as const) {
      expect(now.received).toBeGreaterThan(then.received);
      expect(now.forwarded - then.forwarded).toBe(2 * (now.received - then.received));
    }
  });
});

describe("an outbox whose storage is lost", () => {
  it("loses its charges, which are logged, and the holds expire at home without a charge", async () => {
    const { rest } = await startStream();
    await regions.toEu.set("refuse");
    const { cost } = await rest();
    expect(cost).toBeGreaterThan(0);
    await loseOutbox();
    await regions.toEu.set("pass");
    expect((await outboxesOf(regions.us)).waiting).toBe(0);
    expect(await openHolds()).toBe(1);
    const later = { CLOCK_OFFSET_MS: AFTER_HOLDS_END_MS };
    await Promise.all([regions.restart("eu", later), regions.restart("us", later)]);
    await account.resolved();
    expect((await expectAtRest(account)).size).toBe(0);
    expect(await account.balance()).toBe(1_000_000);
    const expired = (await account.ledger()).filter(({ kind }) => kind === "expire");
    expect(expired).toMatchObject([{ amount_micro: 0 }]);
    await expect.poll(() => JSON.stringify(regions.eu.log)).toContain("holds_expired");
    expect((await inUs(ECHO)).status).toBe(200); // the outbox accepts new messages
    await delivered(regions.us);
    expect((await expectAtRest(account)).size).toBe(1);
  });
});

/** Deletes the storage of the organization's outbox and restarts the region. */
async function loseOutbox(): Promise<void> {
  const { miniflare, directory } = regions.us;
  const outboxes = await miniflare.getDurableObjectNamespace("REGION_OUTBOX", "turnpike-us");
  const ids = peerOutboxNamesOfOrganization("eu", account.orgId).map((name) =>
    outboxes.idFromName(name).toString(),
  );
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const lost = files.filter((file) => ids.some((id) => file.includes(id)));
  assert.ok(lost.length > 0, "the outbox has a file");
  for (const file of lost) rmSync(path.join(directory, file));
  await killRegion(regions.us);
}
