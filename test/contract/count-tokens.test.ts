import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { expect, it } from "vitest";
import { utf8Bytes } from "../../src/shared/tokens.ts";
import { HUMAN_RIGHTS_TEXTS } from "../fixtures/human-rights.ts";
import { balanceOf, openAccount, send } from "./client.ts";

const prose = `The balance is what an organization has paid for and not yet used. Each request puts money
aside before it is sent, as much as it can cost at most, and gives back what it did not need once the answer is there.
So two requests at once never spend the same money, and a stream that nobody reads to its end is paid for as far as it
was made. Whoever wants to know why a request was refused finds the numbers in the answer: what was needed, what is
left, and when more will be there. Nothing is rounded before the last step, and then upwards, to a millionth.`;
const SQL = `-- The book: this region's D1. Times are Unix milliseconds, money whole micros (1,000,000 = 1 dollar).
-- A migration that was ever applied to a deployed book stays as it is; what is new is the next file.

-- ---------------------------------------------------------------- written by D1 alone

-- Who pays. \`status\` is 'active' or 'suspended'.
CREATE TABLE organizations (
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE, -- 3-32 of a-z 0-9 -, unique in this region
  region TEXT NOT NULL, -- this book's own
  is_personal INTEGER NOT NULL DEFAULT 0 CHECK (is_personal IN (0, 1)),
  status TEXT NOT NULL DEFAULT 'active',
  rpm_limit INTEGER CHECK (rpm_limit > 0), -- the organization's own limit on paid calls; null: none
  used_at INTEGER NOT NULL DEFAULT 0, -- last time its wallet published: whom the cron pokes
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whom a key acts as. A removed member keeps its row: its keys are revoked in the same batch.
CREATE TABLE members (
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  org_id TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL, -- owner, admin, billing, member
  created_at INTEGER NOT NULL,
  removed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_organization ON members (org_id, created_at);

-- API keys. The key itself is never stored: \`hash\` is its HMAC and names its register.
CREATE TABLE keys (`;
/** OpenAI's tokens for the format of one message. */
const MESSAGE_OVERHEAD = 6;
const TEXTS = {
  prose,
  markdown: `# Limits\n\n${"| name | value | why |\n|---|---:|---|\n| `rpm_limit` | 60 | **fair** use |\n".repeat(20)}`,
  code: String(utf8Bytes).repeat(6),
  sql: SQL,
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

/**
 * Clients that count too few tokens compact too late, and those that count too many compact too
 * early.
 */
it("POST /v1/messages/count_tokens differs from a tokenizer by at most 15 % for code and many languages", async () => {
  const { key } = await openAccount();
  const coder = new Tiktoken(o200k);
  for (const [name, text] of Object.entries({ ...TEXTS, ...HUMAN_RIGHTS_TEXTS })) {
    const ratio = (await count(key, text)) / (coder.encode(text).length + MESSAGE_OVERHEAD);
    expect([name, ratio]).toEqual([
      name,
      expect.toSatisfy((one: number) => one >= 0.85 && one <= 1.15),
    ]);
  }
});

it("POST /v1/messages/count_tokens serves 50 concurrent requests free of charge", async () => {
  const { key } = await openAccount();
  const before = await balanceOf(key);
  const counts = await Promise.all(Array.from({ length: 50 }, () => count(key, prose)));
  expect(new Set(counts).size).toBe(1);
  expect(await balanceOf(key)).toBe(before);
  const rows = await send("/v1/generations", { key });
  expect(await rows.json()).toMatchObject({ generations: [] });
});
