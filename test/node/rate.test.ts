import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../scripts/admin-client.ts";
import { Account } from "./support/account.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";

const LIMIT = 60;
const FLOOD = 150;

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

type Seen = { readonly status: number; readonly headers: Headers; readonly body: unknown };

/** Reads of the model list and the balance and paid chats, all at once. */
function flood(key: string, count: number): Promise<Seen[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const path = ["/models", "/balance", "/chat/completions"][i % 3] ?? "";
      const chat = { model: "sandbox/echo", messages: [{ role: "user", content: "hi" }] };
      const response = await fetch(regions.eu.baseUrl + path, {
        method: i % 3 === 2 ? "POST" : "GET",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(i % 3 === 2 ? { body: JSON.stringify(chat) } : {}),
      });
      return { status: response.status, headers: response.headers, body: await response.json() };
    }),
  );
}

const remaining = (one: Seen): number => Number(one.headers.get("x-ratelimit-remaining-requests"));

describe("a key with 60 requests per minute", () => {
  it("gets exactly 60 requests of every kind admitted under a flood, and counts down to 0", async () => {
    const account = await Account.open(() => regions.eu, { rpmLimit: LIMIT });
    const answers = await flood(account.key, FLOOD);
    const admitted = answers.filter((one) => one.status === 200);
    expect(admitted).toHaveLength(LIMIT);
    expect(admitted.map(remaining).toSorted((a, b) => b - a)).toEqual(
      Array.from({ length: LIMIT }, (_, i) => LIMIT - 1 - i),
    );
    const refused = answers.filter((one) => one.status === 429);
    expect(refused).toHaveLength(FLOOD - LIMIT);
    for (const one of refused) {
      const { error } = one.body as { error: { type: string; retry_after: number } };
      expect(error.type).toBe("rate_limit_exceeded");
      expect(Number.isInteger(error.retry_after)).toBe(true);
      expect(one.headers.get("retry-after")).toBe(String(error.retry_after));
      expect(error.retry_after).toBeGreaterThanOrEqual(1);
      expect(error.retry_after).toBeLessThanOrEqual(60);
      expect(remaining(one)).toBe(0);
    }
    for (const one of answers) {
      expect(one.headers.get("x-ratelimit-limit-requests")).toBe(String(LIMIT));
      expect(one.headers.get("x-ratelimit-reset-requests")).toMatch(/^(\d+s|1m0s)$/);
    }
    const paid = (await account.ledger()).filter((row) => row.kind === "usage");
    expect(paid).toHaveLength(
      answers.filter((_, i) => i % 3 === 2 && answers[i]?.status === 200).length,
    );
  });

  it("doesn't affect another key's limit", async () => {
    const account = await Account.open(() => regions.eu, { rpmLimit: 5 });
    const { orgId, memberId } = account;
    const admin = { url: regions.eu.adminUrl, token: ADMIN_TOKEN };
    const wish = { orgId, memberId, name: "other", scope: "regional", rpmLimit: 7 } as const;
    const other = await createKey(admin, wish);
    const [first, second] = await Promise.all([flood(account.key, 30), flood(other, 30)]);
    expect(first.filter((one) => one.status === 200)).toHaveLength(5);
    expect(second.filter((one) => one.status === 200)).toHaveLength(7);
  });

  it("gets exactly 1000 of 1100 requests admitted with a limit of 1000", async () => {
    const account = await Account.open(() => regions.eu, { rpmLimit: 1000 });
    const statuses: number[] = [];
    const caller = async (): Promise<void> => {
      while (statuses.length < 1100) {
        const at = statuses.push(0) - 1;
        const response = await account.call("/models");
        await response.body?.cancel();
        statuses[at] = response.status;
      }
    };
    await Promise.all(Array.from({ length: 64 }, caller));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1000);
    expect(statuses.filter((status) => status === 429)).toHaveLength(100);
  });
});
