import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { setClock, valueOf } from "../wallet/wallet-fixture.ts";
import { admin, balanceOf, chat, embed, eventsOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { completionOf } from "./response-schemas.ts";

/** The client's data of one paid request: its body and its receipt. */
type Paid = {
  readonly id: string;
  readonly day: string;
  readonly model: string;
  readonly key: string;
  readonly user: string | null;
  readonly streamed: boolean;
  readonly prompt: number;
  readonly completion: number;
  readonly cost: number;
};
type Receipt = Pick<Paid, "id" | "streamed" | "prompt" | "completion" | "cost">;
type SendRequest = (key: string, user: string | null) => Promise<Receipt>;

const messages = [{ role: "user", content: "one two three" }];

function json(fields: Record<string, unknown>): SendRequest {
  return async (key, user) => {
    const response = await chat(key, { messages, ...fields, user });
    const cost = Number(response.headers.get("x-cost-micro"));
    const id = response.headers.get("x-request-id") ?? "";
    const { usage } = await completionOf(response);
    const { prompt_tokens: prompt, completion_tokens: completion } = usage;
    return { id, streamed: false, prompt, completion, cost };
  };
}

function stream(fields: Record<string, unknown>): SendRequest {
  return async (key, user) => {
    const options = { include_usage: true };
    const body = { messages, ...fields, user, stream: true, stream_options: options };
    const response = await chat(key, body);
    const id = response.headers.get("x-request-id") ?? "";
    const events = await eventsOf(response);
    const { usage } = JSON.parse(events.at(-2) ?? "") as { usage: Record<string, number> };
    return {
      id,
      streamed: true,
      prompt: usage["prompt_tokens"] ?? NaN,
      completion: usage["completion_tokens"] ?? NaN,
      cost: usage["cost_micro"] ?? NaN,
    };
  };
}

const embedding: SendRequest = async (key, user) => {
  const response = await embed(key, { input: ["one", "two three"], user });
  const { usage } = await response.json<{ usage: { prompt_tokens: number } }>();
  return {
    id: response.headers.get("x-request-id") ?? "",
    streamed: false,
    prompt: usage.prompt_tokens,
    completion: 0,
    cost: Number(response.headers.get("x-cost-micro")),
  };
};

const KINDS: readonly (readonly [model: string, sendRequest: SendRequest])[] = [
  ["sandbox/echo", json({ model: "sandbox/echo" })],
  ["sandbox/echo", json({ model: "sandbox/echo", n: 3 })],
  ["sandbox/echo", stream({ model: "smart" })],
  ["sandbox/split-utf8", stream({ model: "sandbox/split-utf8" })],
  ["sandbox/no-usage", json({ model: "sandbox/no-usage" })],
  ["sandbox/no-usage", stream({ model: "sandbox/no-usage" })],
  ["sandbox/embed", embedding],
];
const USERS = [null, "a", "Zoë 🌍", "null"];
const FIRST = Date.UTC(2034, 0, 20, 12);
// The days reach into the next month, and none is old enough to be rolled up.
const DAYS = [0, 1, 15];
const DAY = 86_400_000;

let account: Account;
const paid: Paid[] = [];

beforeAll(async () => {
  account = await openAccount({ credits: 50_000_000 });
  const second = await addMember(account.orgId, "member");
  const keys = [account, second];
  for (const offset of DAYS) {
    setClock(FIRST + offset * DAY);
    const requests = keys.flatMap(({ keyId: id, key }) =>
      USERS.flatMap((user) =>
        KINDS.map(([model, sendRequest]) => ({ id, key, user, model, ask: sendRequest })),
      ),
    );
    const done = await Promise.all(
      requests.map(async ({ id, key, user, model, ask: sendRequest }): Promise<Paid> => {
        const receipt = await sendRequest(key, user);
        const day = new Date(FIRST + offset * DAY).toISOString().slice(0, 10);
        return Object.assign(receipt, { day, model, key: id, user });
      }),
    );
    paid.push(...done);
  }
  return () => setClock(null);
});
afterEach(() => setClock(FIRST + 15 * DAY));

const RANGE = "from=2034-01-20&to=2034-02-04";
const textOf = async (path: string): Promise<string> => {
  const response = await send(path, { key: account.key });
  expect(response.status).toBe(200);
  return response.text();
};
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
const amountsOf = (some: readonly Paid[]) => ({
  requests: some.length,
  prompt_tokens: sum(some.map(({ prompt }) => prompt)),
  cached_tokens: 0,
  completion_tokens: sum(some.map(({ completion }) => completion)),
  cost_micro: sum(some.map(({ cost }) => cost)),
});

type LedgerRow = { kind: string; amount_micro: number; generation_id: string | null };
async function ledger(): Promise<LedgerRow[]> {
  const response = await admin("GET", `/orgs/${account.orgId}/ledger?limit=1000`);
  return (await response.json<{ rows: LedgerRow[] }>()).rows;
}

describe("the total charged for requests", () => {
  it("equals the sum of receipts, the sum of ledger charges, and the decrease of the balance", async () => {
    expect(paid).toHaveLength(DAYS.length * 2 * USERS.length * KINDS.length);
    for (const { cost } of paid) expect(cost).toBeGreaterThan(0);
    const charges = (await ledger()).filter(({ kind }) => kind === "usage");
    const byId = new Map(charges.map((row) => [row.generation_id, -row.amount_micro]));
    expect(byId.size).toBe(charges.length);
    expect(byId).toEqual(new Map(paid.map(({ id, cost }) => [id, cost])));
    expect(await balanceOf(account.key)).toBe(50_000_000 - sum(paid.map(({ cost }) => cost)));
  });

  it.each(["day", "model", "key", "user"] as const)(
    "equals the sum of GET /v1/usage grouped by %s",
    async (by) => {
      const names = [...new Set(paid.map((one) => one[by]))];
      const report = JSON.parse(await textOf(`/v1/usage?group_by=${by}&${RANGE}`)) as {
        data: readonly { group: string | null }[];
        total: unknown;
      };
      expect(report.total).toEqual(amountsOf(paid));
      expect(new Map(report.data.map(({ group, ...amounts }) => [group, amounts]))).toEqual(
        new Map(names.map((name) => [name, amountsOf(paid.filter((one) => one[by] === name))])),
      );
      expect(report.data).toHaveLength(names.length);
    },
  );

  it("equals the amount in GET /v1/usage for each single day", async () => {
    for (const offset of DAYS) {
      const day = new Date(FIRST + offset * DAY).toISOString().slice(0, 10);
      const report = JSON.parse(await textOf(`/v1/usage?from=${day}&to=${day}&group_by=user`)) as {
        total: unknown;
      };
      expect(report.total).toEqual(amountsOf(paid.filter((one) => one.day === day)));
    }
  });

  it("equals the sum of prices times tokens in GET /v1/generations/{id}", async () => {
    const found = await Promise.all(
      paid.map(async ({ id }) => JSON.parse(await textOf(`/v1/generations/${id}`)) as Found),
    );
    for (const [at, one] of found.entries()) {
      const { price } = one;
      const uncached = one.prompt_tokens - one.cached_tokens - one.cache_write_tokens;
      const exact =
        uncached * price.input +
        one.cached_tokens * price.cached +
        one.cache_write_tokens * price.cache_write +
        one.completion_tokens * price.output;
      expect(one.cost_micro).toBe(Math.ceil(exact / 1_000_000));
      expect({
        id: one.id,
        day: one.created_at.slice(0, 10),
        model: one.model,
        key: one.key_id,
        user: one.external_id,
        streamed: one.streamed,
        prompt: one.prompt_tokens,
        completion: one.completion_tokens,
        cost: one.cost_micro,
      }).toEqual(paid[at]);
      expect(one.estimated).toBe(one.model === "sandbox/no-usage");
    }
  });

  it("equals the amount in the operator's usage report, and in the database after a publish", async () => {
    const wallet = env.WALLET.getByName(account.orgId);
    const query = `?group_by=model&${RANGE}`;
    const operators = await admin("GET", `/orgs/${account.orgId}/usage${query}`);
    expect(await operators.text()).toBe(await textOf(`/v1/usage${query}`));
    valueOf(await wallet.poke());
    const reconciled = await admin("POST", `/orgs/${account.orgId}/reconcile`);
    expect((await reconciled.json<{ differences: unknown }>()).differences).toEqual([]);
    const { results } = await env.DB.prepare(
      `SELECT day, requests, prompt_tokens, 0 AS cached_tokens, completion_tokens, cost_micro FROM daily_usage
      WHERE org_id = ? ORDER BY day`,
    )
      .bind(account.orgId)
      .all();
    const days = [...new Set(paid.map(({ day }) => day))];
    expect(results).toEqual(
      days.map((day) => Object.assign({ day }, amountsOf(paid.filter((one) => one.day === day)))),
    );
  });

  it("equals the earlier total after a publish and an eviction of the wallet", async () => {
    const paths = [
      ...["day", "model", "key", "user"].map((by) => `/v1/usage?group_by=${by}&${RANGE}`),
      `/v1/generations/${paid[0]?.id}`,
    ];
    const wallet = env.WALLET.getByName(account.orgId);
    await chat(account.key); // there is something to publish
    const before = await Promise.all(paths.map(textOf));
    expect(JSON.parse(before[0] ?? "")).toMatchObject({ total: { requests: paid.length + 1 } });
    valueOf(await wallet.poke());
    expect(await Promise.all(paths.map(textOf))).toEqual(before);
    await evictDurableObject(wallet);
    expect(await Promise.all(paths.map(textOf))).toEqual(before);
  });
});

type Found = {
  readonly [K in "id" | "created_at" | "model" | "key_id"]: string;
} & {
  readonly [K in "prompt_tokens" | "cached_tokens" | "cache_write_tokens"]: number;
} & {
  readonly external_id: string | null;
  readonly streamed: boolean;
  readonly estimated: boolean;
  readonly completion_tokens: number;
  readonly cost_micro: number;
  readonly price: Readonly<Record<"input" | "cached" | "cache_write" | "output", number>>;
};
