import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account, answerOf, sumOf } from "./support/account.ts";
import type { RawConnection } from "./support/raw-request.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import { postCredits } from "../../scripts/admin-client.ts";

const ADMITTED = 100;
const ASKED = 200;
/** Least = most: a short prompt is held at its bound, and fewer than 64 tokens are never cut. */
const request = {
  model: "sandbox/stall",
  messages: [{ role: "user", content: "hold this" }],
  max_tokens: 48,
  stream: true,
};

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions({ bindings: { DRAIN_S: "0" } });
});
afterAll(() => regions.stop());

const open = (credits: number): Promise<Account> => Account.open(() => regions.eu, { credits });

/** What one such request needs, as a refusal names it. */
async function leastOf(body: object): Promise<number> {
  const response = await (await open(0)).chat(body);
  const { error } = (await response.json()) as { error: { required_micro: number } };
  return error.required_micro;
}

/** So many requests at once, each as far as its answer's first bytes: none has settled. */
async function flood(account: Account, count: number, body: object): Promise<RawConnection[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => account.open(body)));
  await Promise.all(
    connections.map((one) =>
      one.readUntil((received) => {
        const text = received.toString();
        return text.includes("data: ") || text.includes('"error"');
      }),
    ),
  );
  return connections;
}

function leave(connections: readonly RawConnection[]): Promise<unknown> {
  return Promise.all(connections.map((one) => one.reset()));
}

describe("concurrent requests before any settlement", () => {
  it("hold exactly the balance: 100 of 200; the others get a 402 that can be retried, with amounts", async () => {
    const least = await leastOf(request);
    const account = await open(ADMITTED * least);
    const connections = await flood(account, ASKED, request);
    const answers = connections.map(answerOf);
    expect(await account.standing()).toMatchObject({
      credits_micro: ADMITTED * least,
      held_micro: ADMITTED * least,
      open_holds: ADMITTED,
    });
    expect(answers.filter((one) => one.status === 200)).toHaveLength(ADMITTED);
    const refused = answers.filter((one) => one.status === 402);
    expect(refused).toHaveLength(ASKED - ADMITTED);
    for (const { headers, body } of refused) {
      expect(JSON.parse(body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1))).toMatchObject({
        error: {
          type: "insufficient_balance",
          balance_micro: ADMITTED * least,
          held_micro: ADMITTED * least,
          required_micro: least,
        },
      });
      expect(headers.get("retry-after")).toBe("1");
      expect(headers.get("x-should-retry")).toBe("true");
    }

    await leave(connections);
    const standing = await account.resolved();
    const rows = await account.ledger();
    expect(rows.filter((row) => row.kind === "usage")).toHaveLength(ADMITTED);
    expect(Math.min(...rows.map((row) => row.balance_micro))).toBeGreaterThanOrEqual(0);
    expect(standing.credits_micro).toBeLessThan(ADMITTED * least);
    expect(sumOf(rows)).toBe(standing.credits_micro);
    expect((await account.published()).balance).toBe(standing.credits_micro);
    expect(await account.differences()).toEqual([]);
  });

  it("hold exactly a new end user's default quota: 10 of 100", async () => {
    const least = await leastOf(request);
    const account = await open(1_000_000);
    const quota = 10 * least;
    await account.settings({ defaultUserDailyQuotaMicro: quota });
    const connections = await flood(account, 100, { ...request, user: "never seen" });
    const answers = connections.map(answerOf);
    expect(await account.standing()).toMatchObject({ held_micro: quota, open_holds: 10 });
    const refused = answers.filter((one) => one.status === 429);
    expect(refused).toHaveLength(90);
    for (const { headers, body } of refused) {
      expect(body).toContain('"code":"end_user_quota_exceeded"');
      expect(headers.get("retry-after")).toBe("1");
      expect(headers.get("x-should-retry")).toBe("true");
    }

    await leave(connections);
    const { credits_micro } = await account.resolved();
    const { endUsers } = await account.published();
    expect(endUsers).toHaveLength(1);
    expect(endUsers[0]?.["daily_spend_micro"]).toBe(1_000_000 - credits_micro);
    expect(1_000_000 - credits_micro).toBeLessThanOrEqual(quota);
  });

  it("never exceed a new end user's default quota while others are charged", async () => {
    const quick = { ...request, model: "sandbox/echo", stream: false, user: "never seen" };
    const account = await open(1_000_000);
    const quota = 10 * (await leastOf(quick));
    await account.settings({ defaultUserMonthlyQuotaMicro: quota });
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const response = await account.chat(quick);
        await response.text();
        return response.status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(10);
    const { credits_micro } = await account.resolved();
    expect(1_000_000 - credits_micro).toBeLessThanOrEqual(quota);
    expect((await account.published()).endUsers).toMatchObject([
      { external_id: "never seen", monthly_spend_micro: 1_000_000 - credits_micro },
    ]);
  });
});

describe("a rejection for lack of credits without open holds", () => {
  it("contains x-should-retry: false", async () => {
    const response = await (await open(1)).chat(request);
    expect(response.status).toBe(402);
    expect(await response.json()).toMatchObject({
      error: { balance_micro: 1, required_micro: await leastOf(request) },
    });
    expect(response.headers.get("retry-after")).toBeNull();
    expect(response.headers.get("x-should-retry")).toBe("false");
  });

  it("leaves every read available at a balance of 0", async () => {
    const account = await open(0);
    expect((await account.chat(request)).status).toBe(402);
    for (const path of ["/balance", "/models", "/models/sandbox/echo"]) {
      expect((await account.call(path)).status).toBe(200);
    }
    expect(await account.balance()).toBe(0);
  });

  it("leaves the balance unchanged if a credit would exceed the largest safe integer", async () => {
    const account = await open(0);
    const credit = (amountMicro: number, reference: string) =>
      postCredits({ url: regions.eu.adminUrl, token: ADMIN_TOKEN }, account.orgId, {
        amount_micro: amountMicro,
        reference,
      });
    await credit(Number.MAX_SAFE_INTEGER, "all there is");
    await expect(credit(1, "one more")).rejects.toMatchObject({ status: 400 });
    expect(await account.balance()).toBe(Number.MAX_SAFE_INTEGER);
    expect(await account.differences()).toEqual([]);
  });
});
