import { afterAll, beforeAll, expect, it } from "vitest";
import { recordMeasured } from "../measured.ts";
import { Account } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const RACES = 60;
const RUNNERS = 16;
/** The sandbox model's price in micro-credits per token. */
const PRICE = { input: 1, output: 2 } as const;
/** The response is as long as its cap, so that the charge is close to the hold. */
const BODY = {
  model: "sandbox/echo",
  messages: [{ role: "user", content: "the last of it ".repeat(16) }],
  max_tokens: 40,
};
const STREAM = { ...BODY, stream: true, stream_options: { include_usage: true } };

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

/** Returns the required credits of the request from its rejection. */
async function leastCredits(): Promise<number> {
  const refused = await (await Account.open(() => regions.eu, { credits: 0 })).chat(BODY);
  return ((await refused.json()) as { error: { required_micro: number } }).error.required_micro;
}

/** Returns a response's usage, or 0 for a rejection due to insufficient credits. */
async function used(response: Response): Promise<number> {
  const text = await response.text();
  if (response.status === 402) return 0;
  expect(response.status, text).toBe(200);
  const input = Number(/"prompt_tokens":(\d+)/.exec(text)?.[1]);
  const output = Number(/"completion_tokens":(\d+)/.exec(text)?.[1]);
  expect(input * output, text.slice(-300)).toBeGreaterThan(0);
  return input * PRICE.input + output * PRICE.output;
}

it(`a wallet never overspends in ${RACES} races of ${RUNNERS} requests for the last credits`, async () => {
  const least = await leastCredits();
  let [served, overspend, belowZero] = [0, 0, 0];
  for (let race = 0; race < RACES; race++) {
    const credits = (1 + (race % 5)) * least + (race % 7);
    const account = await Account.open(() => regions.eu, { credits });
    const runners = Array.from({ length: RUNNERS }, async (_, n) =>
      used(await account.chat(n % 2 === 0 ? BODY : STREAM)),
    );
    const costs = await Promise.all(runners);
    served += costs.filter((cost) => cost > 0).length;
    const sum = costs.reduce((total, cost) => total + cost, 0);
    overspend += Math.max(0, sum - credits);
    const lowest = Math.min(...(await account.ledger()).map((row) => row.balance_micro));
    belowZero += Math.max(0, 0 - lowest);
  }
  recordMeasured({ races: RACES, requests: RACES * RUNNERS, served, overspend, belowZero });
  expect({ overspend, belowZero }).toEqual({ overspend: 0, belowZero: 0 });
  expect(served).toBeGreaterThan(0);
  expect(served, "nobody was refused: no race").toBeLessThan(RACES * RUNNERS);
});
