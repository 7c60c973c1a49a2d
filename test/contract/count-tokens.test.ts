import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { expect, it } from "vitest";
import { utf8Bytes } from "../../src/lib/tokens.ts";
import { balanceOf, openAccount, send } from "./client.ts";

const prose = `The balance is what an organization has paid for and not yet used. Each request puts money
aside before it is sent, as much as it can cost at most, and gives back what it did not need once the answer is there.
So two requests at once never spend the same money, and a stream that nobody reads to its end is paid for as far as it
was made. Whoever wants to know why a request was refused finds the numbers in the answer: what was needed, what is
left, and when more will be there. Nothing is rounded before the last step, and then upwards, to a millionth.`;
const TEXTS = {
  prose,
  markdown: `# Limits\n\n${"| name | value | why |\n|---|---:|---|\n| `rpm_limit` | 60 | **fair** use |\n".repeat(20)}`,
  code: String(utf8Bytes).repeat(6),
  sql: "CREATE TABLE IF NOT EXISTS key_terms (key_id TEXT PRIMARY KEY REFERENCES keys (id), budget_micro INTEGER);\n".repeat(
    9,
  ),
  json: JSON.stringify({
    rows: Array.from({ length: 200 }, (_, id) => ({ id, name: `row ${id}` })),
  }),
};

async function count(key: string, text: string): Promise<number> {
  const body = { model: "sandbox/echo", messages: [{ role: "user", content: text }] };
  const answer = await send("/v1/messages/count_tokens", { key, body });
  expect(answer.status).toBe(200);
  return (await answer.json<{ input_tokens: number }>()).input_tokens;
}

/** Where no host counts: a client that counts too little compacts too late, one that counts too much too early. */
it("counts never less than a tokenizer, and at most half more: prose, Markdown, code, SQL, JSON", async () => {
  const { key } = await openAccount();
  const coder = new Tiktoken(o200k);
  for (const [name, text] of Object.entries(TEXTS)) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const ratio = (await count(key, text)) / coder.encode(text).length;
    expect([name, ratio]).toEqual([
      name,
      expect.toSatisfy((one: number) => one >= 1 && one <= 1.5),
    ]);
  }
});

it("50 at once are all answered, and cost nothing", async () => {
  const { key } = await openAccount();
  const before = await balanceOf(key);
  const counts = await Promise.all(Array.from({ length: 50 }, () => count(key, prose)));
  expect(new Set(counts).size).toBe(1);
  expect(await balanceOf(key)).toBe(before);
  const rows = await send("/v1/generations", { key });
  expect(await rows.json()).toMatchObject({ generations: [] });
});
