import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import { charged, CREDITS } from "./support/idempotency-fixture.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion } from "./support/two-regions.ts";

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
let account: Account;
beforeAll(async () => {
  regions = await startTwoRegions();
  account = await Account.open(() => regions.eu, { credits: CREDITS, keyScope: "global" });
});
afterAll(() => regions.stop());

type Answer = {
  readonly status: number;
  readonly shouldRetry: string | null;
  readonly id: string | null;
  readonly body: { readonly id?: string; readonly error?: object };
};

/** Sends a request with the account's global key and an Idempotency-Key. */
async function send(region: TestRegion, name: string, [path, body]: SentRequest): Promise<Answer> {
  const response = await fetch(`${region.baseUrl}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${account.key}`,
      "content-type": "application/json",
      "idempotency-key": name,
    },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    shouldRetry: response.headers.get("x-should-retry"),
    id: response.headers.get("x-request-id"),
    body: (await response.json()) as Answer["body"],
  };
}

type SentRequest = readonly [path: string, body: object];
const messages = [{ role: "user", content: "one two" }];
const CHAT: SentRequest = ["/chat/completions", { model: "sandbox/echo", messages }];
const KEYS: SentRequest = ["/keys", { name: "ci" }];

describe("an Idempotency-Key of a global key", () => {
  it.each([
    ["home-first", "eu", "us"],
    ["away-first", "us", "eu"],
  ] as const)(
    "runs a completion once across both regions, and returns 409 for each repeat: %s",
    async (how, one, other) => {
      const before = await charged(account);
      const first = await send(regions[one], how, CHAT);
      expect(first.status).toBe(200);
      // in another region, the request is in progress until its charge arrives in the home region
      await account.resolved();
      for (const region of [regions[other], regions[one]]) {
        const { status, shouldRetry, body } = await send(region, how, CHAT);
        expect([status, shouldRetry]).toEqual([409, "false"]);
        expect(body.error).toMatchObject({ code: "idempotency_replay", generation_id: first.id });
      }
      const [path] = CHAT;
      const { status } = await send(regions[other], how, [path, { ...CHAT[1], max_tokens: 9 }]);
      expect(status).toBe(422);
      expect(await charged(account)).toEqual([...before, first.id]);
    },
  );

  it("runs only one of 30 concurrent completions, half of them sent to another region", async () => {
    const before = await charged(account);
    const responses = Array.from({ length: 30 }, (_, i) =>
      send(i % 2 === 0 ? regions.eu : regions.us, "at-once", CHAT),
    );
    const statuses = (await Promise.all(responses)).map((answer) => answer.status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(29);
    expect(await charged(account)).toHaveLength(before.length + 1);
  });

  it("creates only one key, whichever region is called", async () => {
    const first = await send(regions.us, "a-key", KEYS);
    expect(first.status).toBe(201);
    for (const region of [regions.eu, regions.us]) {
      const { status, shouldRetry, body } = await send(region, "a-key", KEYS);
      expect([status, shouldRetry]).toEqual([409, "false"]);
      expect(body.error).toMatchObject({ code: "idempotency_replay", key_id: first.body.id });
    }
  });
});
