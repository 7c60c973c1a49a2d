import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startOpenAiMock } from "../fixtures/openai-mock.ts";
import { Account } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";

/** Micros per token at the model's price. */
const OUTPUT = 2;
const LEAST_OUTPUT = 64;
/** DEFAULT_MAX_OUTPUT: what is reserved when a request names no cap. */
const DEFAULT_OUTPUT = 4096;

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
let mock: Awaited<ReturnType<typeof startOpenAiMock>>;
/** What the prompt below is held at: its hard bound, one micro a token. */
let promptBound: number;

beforeAll(async () => {
  mock = await startOpenAiMock();
  regions = await startTwoRegions({
    bindings: {
      PROVIDERS: JSON.stringify([
        { id: "local", base_url: mock.url, profile: "generic", regions: ["eu", "us"] },
      ]),
      MODELS: JSON.stringify([
        {
          id: "local/chat",
          kind: "chat",
          context: 128_000,
          max_output: 16_384,
          price: { input: 1_000_000, output: OUTPUT * 1_000_000 },
          routes: [{ provider: "local", upstream_id: "chat" }],
        },
      ]),
    },
  });
  const refused = await (await open(0)).chat(request);
  const { error } = (await refused.json()) as { error: { required_micro: number } };
  promptBound = error.required_micro - LEAST_OUTPUT * OUTPUT;
});
afterAll(async () => {
  await regions.stop();
  await mock.close();
});
beforeEach(() => {
  mock.script(null);
});

/** What must be free for a request without a cap to be granted `amount`: it may have half. */
const twice = (amount: number): number => 2 * amount;

const request = { model: "local/chat", messages: [{ role: "user", content: "how long?" }] };
const open = (credits: number): Promise<Account> => Account.open(() => regions.eu, { credits });

/** The output cap that the upstream was sent last. */
function capSent(): unknown {
  return mock.requests.at(-1)?.json["max_tokens"];
}

describe("a request whose whole output exceeds the balance", () => {
  it("gets a cap for half of the balance, as the header and the provider's request say", async () => {
    const credits = twice(promptBound + 500 * OUTPUT + 1) + 1;
    const account = await open(credits);
    const response = await account.chat(request);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-granted-max-tokens")).toBe("500");
    expect(capSent()).toBe(500);
    const cost = Number(response.headers.get("x-cost-micro"));
    expect(await account.balance()).toBe(credits - cost);
  });

  it("gets the whole balance if the request sets an output cap, also streamed", async () => {
    const account = await open(promptBound + 700 * OUTPUT);
    const response = await account.chat({ ...request, stream: true, max_completion_tokens: 5000 });
    expect(response.headers.get("x-granted-max-tokens")).toBe("700");
    expect(await response.text()).toContain("data: [DONE]");
    expect(capSent()).toBe(700);
  });

  it("gets a third of the amount per choice for three choices", async () => {
    const account = await open(twice(promptBound + 3 * 200 * OUTPUT + 5) + 1);
    const response = await account.chat({ ...request, n: 3 });
    expect(response.headers.get("x-granted-max-tokens")).toBe("200");
    expect(capSent()).toBe(200);
    expect(mock.requests.at(-1)?.json["n"]).toBe(3);
  });

  it("gets at least the minimum output, and returns 402 one micro-credit below", async () => {
    const least = promptBound + LEAST_OUTPUT * OUTPUT;
    const fits = await (await open(least)).chat(request);
    expect([fits.status, fits.headers.get("x-granted-max-tokens")]).toEqual([200, "64"]);
    expect(capSent()).toBe(LEAST_OUTPUT);
    const calls = mock.requests.length;
    const refused = await (await open(least - 1)).chat(request);
    expect(refused.status).toBe(402);
    expect(await refused.json()).toMatchObject({
      error: { balance_micro: least - 1, required_micro: least },
    });
    expect(mock.requests).toHaveLength(calls);
  });

  it("gets no x-granted-max-tokens header if the balance covers everything, but the provider gets an explicit cap", async () => {
    const whole = promptBound + DEFAULT_OUTPUT * OUTPUT;
    const account = await open(twice(whole));
    const response = await account.chat(request);
    expect(response.headers.get("x-granted-max-tokens")).toBeNull();
    expect(capSent()).toBe(DEFAULT_OUTPUT);
    await account.chat({ ...request, max_tokens: 9 });
    expect(capSent()).toBe(9);

    const oneLess = await (await open(twice(whole) - 1)).chat(request);
    expect(oneLess.headers.get("x-granted-max-tokens")).toBe(String(DEFAULT_OUTPUT - 1));
    expect(capSent()).toBe(DEFAULT_OUTPUT - 1);
    const capped = await (await open(whole)).chat({ ...request, max_tokens: DEFAULT_OUTPUT });
    expect(capped.headers.get("x-granted-max-tokens")).toBeNull();
    expect(capSent()).toBe(DEFAULT_OUTPUT);
  });

  it("leaves no balance below 0, even if the provider exceeds the cap", async () => {
    mock.script((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          object: "chat.completion",
          choices: [
            { index: 0, message: { role: "assistant", content: "!" }, finish_reason: "stop" },
          ],
          usage: { prompt_tokens: 1e6, completion_tokens: 1e6, total_tokens: 2e6 },
        }),
      );
    });
    const account = await open(1000);
    const response = await account.chat({ ...request, max_tokens: 64 });
    expect(response.headers.get("x-cost-micro")).toBe("1000");
    expect(await account.balance()).toBe(0);
    const kinds = (await account.ledger()).map((row) => [row.kind, row.amount_micro]);
    expect(kinds).toContainEqual(["shortfall", 0]);
    expect(await account.differences()).toEqual([]);
  });
});

describe("a request of an end user whose quota is almost used up", () => {
  const withUser = { ...request, user: "ann" };

  it("gets half of the remaining quota, or all of it if the request sets an output cap, in the header and the provider's request", async () => {
    const account = await open(1_000_000);
    const quota = twice(promptBound + 300 * OUTPUT);
    await account.settings({ defaultUserDailyQuotaMicro: quota });
    const response = await account.chat(withUser);
    expect(response.headers.get("x-granted-max-tokens")).toBe("300");
    expect(capSent()).toBe(300);
    const capped = await account.chat({ ...request, user: "bob", max_tokens: 5000 });
    const all = Math.floor((quota - promptBound) / OUTPUT);
    expect(capped.headers.get("x-granted-max-tokens")).toBe(String(all));
    expect(capSent()).toBe(all);
    expect((await account.chat(request)).headers.get("x-granted-max-tokens")).toBeNull();
  });

  it.each([
    ["daily", "defaultUserDailyQuotaMicro"],
    ["monthly", "defaultUserMonthlyQuotaMicro"],
  ] as const)(
    "gets its minimum output while that fits, then 429 without a retry: %s",
    async (name, field) => {
      const account = await open(1_000_000);
      const least = promptBound + LEAST_OUTPUT * OUTPUT;
      await account.settings({ [field]: least });
      const fits = await account.chat(withUser);
      expect([fits.status, capSent()]).toEqual([200, LEAST_OUTPUT]);
      const cost = Number(fits.headers.get("x-cost-micro"));
      expect(cost).toBeGreaterThan(0);

      const calls = mock.requests.length;
      const refused = await account.chat(withUser);
      expect(refused.status).toBe(429);
      const { error } = (await refused.json()) as { error: Record<string, string> };
      expect(error).toMatchObject({ type: "api_error", code: "end_user_quota_exceeded" });
      expect(error["message"]).toContain(`your current ${name} quota`);
      expect(refused.headers.get("retry-after")).toBeNull();
      expect(refused.headers.get("x-should-retry")).toBe("false");
      expect(mock.requests).toHaveLength(calls);
      expect((await account.chat(request)).status).toBe(200);
      expect((await account.published()).endUsers).toMatchObject([
        { daily_spend_micro: cost, monthly_spend_micro: cost },
      ]);
    },
  );
});
