import { describe, expect, it } from "vitest";
import { ENDPOINT_ROWS, INPUT_ENDPOINT_ROWS } from "../fixtures/endpoint-table.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { createSession } from "./session-client.ts";
import { periodOf } from "../../src/shared/period.ts";

type Receipt = { readonly id: string; readonly tags: Readonly<Record<string, string>> };
type Usage = {
  readonly data: readonly { readonly group: string | null; readonly cost_micro: number }[];
  readonly total: { readonly cost_micro: number };
};

const idOf = (response: Response): string => response.headers.get("x-request-id") ?? "";

async function receipt(account: Account, response: Response): Promise<Receipt> {
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  const found = await send(`/v1/generations/${idOf(response)}`, { key: account.key });
  return found.json<Receipt>();
}

async function read<T>(account: Account, path: string): Promise<T> {
  const response = await send(path, { key: account.key });
  expect(response.status).toBe(200);
  return response.json<T>();
}

const declare = (account: Account, tagKeys: unknown): Promise<Response> =>
  send(`/v1/orgs/${account.orgId}/settings`, {
    method: "PATCH",
    key: account.key,
    body: { tag_keys: tagKeys },
  });

const LENIENT = ENDPOINT_ROWS.filter((row) => !INPUT_ENDPOINT_ROWS.includes(row));

describe("a tag of a request", () => {
  // These endpoints reject unknown fields, so that tags can only be in the header.
  it.each(INPUT_ENDPOINT_ROWS)(
    "appears in the receipt if the header x-tags contains the tag at $path",
    async (row) => {
      const account = await openAccount();
      const body = row.body({ model: row.models.good, text: "Hi" });
      const headers = { "x-tags": "team=search" };
      const response = await send(`/v1${row.path}`, { key: account.key, headers, body });
      expect((await receipt(account, response)).tags).toEqual({ team: "search" });
    },
  );

  it.each(LENIENT)(
    "appears in the receipt if sent in x-tags, metadata or providerOptions at $path",
    async (row) => {
      const account = await openAccount();
      const model = row.name === "embeddings" ? "sandbox/embed" : "sandbox/echo";
      const body = {
        ...row.body({ model, text: "Hi" }),
        metadata: { feature: "chat", user_id: "ann" },
        providerOptions: { gateway: { tags: { run: "4,2=x" } } },
      };
      const headers = { "x-tags": "team=search, urgent" };
      const response = await send(`/v1${row.path}`, { key: account.key, headers, body });
      expect((await receipt(account, response)).tags).toEqual({
        team: "search",
        urgent: "true",
        run: "4,2=x",
        feature: "chat",
      });
    },
  );

  it("can appear in a list in providerOptions, and is stored once if repeated", async () => {
    const account = await openAccount();
    const response = await chat(
      account.key,
      { metadata: { team: "a" }, providerOptions: { gateway: { tags: ["team=a", "beta"] } } },
      { headers: { "x-tags": "team=a" } },
    );
    expect((await receipt(account, response)).tags).toEqual({ team: "a", beta: "true" });
  });

  it("gives way to a session's tag of the same name, and only 8 tags are stored", async () => {
    const account = await openAccount();
    const tags = { customer: "cus_1", plan: "pro" };
    const { token } = await createSession(account.key, { tags });
    const headers = { "x-tags": "customer=cus_2,a=1,b=1,c=1,d=1,e=1,f=1,g=1" };
    const paid = await receipt(account, await chat(token, {}, { headers }));
    expect(paid.tags).toEqual({ ...tags, a: "1", b: "1", c: "1", d: "1", e: "1", f: "1" });
    expect(await (await send("/v1/sessions", { key: account.key })).json()).toMatchObject({
      sessions: [{ tags }],
    });
    const wrong = await send("/v1/sessions", { key: account.key, body: { tags: { "a b": "1" } } });
    expect((await errorOf(wrong, 400)).param).toBe("tags.a b");
  });

  it("isn't created from an invalid metadata pair, which x-dropped lists", async () => {
    const account = await openAccount();
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`k${i}`, "v"]));
    const metadata = { "bad key": "x", long: "x".repeat(65), ...many };
    const response = await chat(account.key, { metadata });
    expect(response.headers.get("x-dropped")).toBe("metadata.bad_key, metadata.long, metadata.k8");
    expect(Object.keys((await receipt(account, response)).tags)).toHaveLength(8);
  });

  it.each([
    ["x-tags", "a=1,a=2", {}],
    ["x-tags", "a=1,,b=2", {}],
    ["x-tags", "a=", {}],
    ["x-tags", "=a", {}],
    ["x-tags", "-a=1", {}],
    ["x-tags", `a=${"x".repeat(65)}`, {}],
    ["x-tags", `${"x".repeat(65)}=a`, {}],
    ["x-tags", "é=1", {}],
    ["x-tags", "a,b,c,d,e,f,g,h,i", {}],
    ["metadata.a", "a=1", { metadata: { a: "2" } }],
    ["providerOptions.gateway.tags.a", "a=1", { tags: { a: "2" } }],
    ["providerOptions.gateway.tags.a", "", { tags: { a: 1 } }],
    ["providerOptions.gateway.tags.a", "", { tags: { a: "x\ny" } }],
    ["providerOptions.gateway.tags[1]", "", { tags: ["a=1", "b c=1"] }],
    ["providerOptions.gateway.tags", "", { tags: "a=1" }],
  ] as const)(
    "causes a 400 with the param %s for invalid tags: %s %j",
    async (param, header, request) => {
      const account = await openAccount();
      const { tags, ...body } = request as { tags?: unknown };
      const fields = tags === undefined ? body : { providerOptions: { gateway: { tags } } };
      const response = await chat(account.key, fields, { headers: { "x-tags": header } });
      expect((await errorOf(response, 400)).param).toBe(param);
    },
  );

  it("filters and groups usage and requests", async () => {
    const account = await openAccount();
    expect((await declare(account, ["team"])).status).toBe(200);
    const costs: Record<string, number> = {};
    for (const team of ["search", "search", "ads", ""]) {
      const headers: Record<string, string> = team === "" ? {} : { "x-tags": `team=${team},run=1` };
      const response = await chat(account.key, {}, { headers });
      costs[team] = (costs[team] ?? 0) + Number(response.headers.get("x-cost-micro"));
    }
    const { data, total } = await read<Usage>(account, "/v1/usage?group_by=tag:team");
    const groups = data.map(({ group, cost_micro: cost }) => [group ?? "", cost]);
    expect(Object.fromEntries(groups)).toEqual(costs);
    expect(data.reduce((sum, one) => sum + one.cost_micro, 0)).toBe(total.cost_micro);
    const { day } = periodOf(Date.now());
    const hourly = `/v1/usage?from=${day}T00&to=${day}T23&group_by=hour,tag:run`;
    expect((await read<Usage>(account, hourly)).data.map(({ group }) => group)).toEqual([
      null,
      "1",
    ]);
    const pairs = await read<Usage>(account, "/v1/usage?group_by=tag:team,tag:run");
    expect(pairs.data).toContainEqual(expect.objectContaining({ group: "ads", group2: "1" }));
    const ads = await read<Usage>(account, "/v1/usage?group_by=model&tag=team:ads");
    expect(ads.total.cost_micro).toBe(costs["ads"]);
    const list = await read<{ generations: Receipt[] }>(account, "/v1/generations?tag=team:search");
    expect(list.generations.map(({ tags }) => tags)).toEqual(
      Array.from({ length: 2 }, () => ({ team: "search", run: "1" })),
    );
  });
});
