import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareCatalog } from "../../scripts/admin/catalog-command.ts";
import { listUrl, PROVIDER_LISTS, readList } from "../../scripts/catalog-check/lists.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";

const IDS = (provider: string): string[] => [
  ...new Set(
    CATALOG.flatMap(({ routes }) =>
      routes.filter((route) => route.provider === provider).map(({ upstreamId }) => upstreamId),
    ),
  ),
];

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns a provider's list of these models in its documented format. `more` has fields of the
 * first model.
 */
const FORMATS: Readonly<Record<string, (ids: readonly string[], more?: Fields) => unknown>> = {
  openai: data,
  anthropic: data,
  mistral: data,
  groq: data,
  deepseek: data,
  together: (ids, more) => rows(ids, "id", more),
  google: (ids, more) => ({
    models: rows(
      ids.map((id) => `models/${id}`),
      "name",
      more,
    ),
  }),
  fireworks: (ids, more) => ({ models: rows(ids, "name", more), nextPageToken: "" }),
  xai: (ids, more) => ({ models: rows(ids, "id", more) }),
  cohere: (ids, more) => ({ models: rows(ids, "name", more) }),
  elevenlabs: (ids, more) => rows(ids, "model_id", more),
};

function rows(ids: readonly string[], name: string, more: Fields = {}): object[] {
  return ids.map((id, at) => (at === 0 ? { [name]: id, ...more } : { [name]: id }));
}
function data(ids: readonly string[], more?: Fields): object {
  return { object: "list", data: rows(ids, "id", more) };
}

const TODAY = "2026-11-26";
const UNTIL = "2027-01-25";

async function findingsOf(provider: string, ids: readonly string[], more?: Fields) {
  const list = PROVIDER_LISTS.find((one) => one.provider === provider);
  const json = FORMATS[provider]?.(ids, more);
  if (list === undefined) throw new Error(`no list of ${provider}`);
  const listed = await readList(list, "key", async () => Response.json(json));
  const found = compareCatalog(CATALOG, { provider, listed, today: TODAY, until: UNTIL });
  return found.map(({ upstream_id: id, finding, detail }) => [id, finding, detail]);
}

describe("the catalog check", () => {
  it.each(Object.keys(FORMATS))(
    "reports a model that is missing from the list of %s, and nothing for a complete list",
    async (id) => {
      const ids = IDS(id);
      expect(ids.length).toBeGreaterThan(0);
      expect(await findingsOf(id, ids)).toEqual([]);
      const [first] = ids;
      const found = await findingsOf(id, ids.slice(1));
      expect(new Set(found.map(String))).toEqual(
        new Set([`${first},missing,not in the provider's list`]),
      );
    },
  );

  it.each<[string, Fields, string, string]>([
    ["openai", { shutdown_date: "2027-01-20" }, "ending", "2027-01-20"],
    [
      "anthropic",
      { lifecycle: "retired", retires_at: "2026-10-01T00:00:00Z" },
      "retired",
      "2026-10-01",
    ],
    [
      "anthropic",
      { lifecycle: "deprecated", retires_at: "2026-10-01T00:00:00Z" },
      "ending",
      "2026-10-01",
    ],
    ["mistral", { deprecation: "2026-12-31T12:00:00.000000Z" }, "ending", "2026-12-31"],
    ["groq", { active: false }, "retired", "now"],
    ["fireworks", { deprecationDate: { year: 2027, month: 1, day: 2 } }, "ending", "2027-01-02"],
    ["cohere", { is_deprecated: true }, "retired", "now"],
  ])("reports a model with an end date: %s %j", async (provider, more, finding, detail) => {
    const [first] = IDS(provider);
    const found = await findingsOf(provider, IDS(provider), more);
    expect(found.length).toBeGreaterThan(0);
    for (const one of found) expect(one).toEqual([first, finding, detail]);
  });

  it("reports only models that retire within the given number of days", async () => {
    expect(await findingsOf("openai", IDS("openai"), { shutdown_date: "2027-01-26" })).toEqual([]);
  });

  it.each<[string, (input: number, output: number) => Fields]>([
    ["together", (input, output) => ({ pricing: { input, output, hourly: 0 } })],
    [
      "xai",
      (input, output) => ({
        prompt_text_token_price: input * 10_000,
        completion_text_token_price: output * 10_000,
      }),
    ],
  ])("reports a changed price of %s", async (provider, fieldsOf) => {
    const [first = ""] = IDS(provider);
    const route = CATALOG.flatMap(({ routes }) => routes).find(
      (one) => one.provider === provider && one.upstreamId === first,
    );
    const { input = 0, output = 0 } =
      route?.prices.findLast(({ from }) => from <= TODAY)?.price ?? {};
    const [inDollars, outDollars] = [input / 1_000_000, output / 1_000_000];
    expect(await findingsOf(provider, IDS(provider), fieldsOf(inDollars, outDollars))).toEqual([]);
    const [found] = await findingsOf(provider, IDS(provider), fieldsOf(inDollars * 2, outDollars));
    expect(found).toEqual([first, "price", `input $${inDollars * 2}, here $${inDollars}`]);
  });

  it("reads all pages of a model list", async () => {
    const list = PROVIDER_LISTS.find((one) => one.provider === "google");
    if (list === undefined) throw new Error("no list of Google");
    const pages: string[] = [];
    const listed = await readList(list, "key", async (input) => {
      const url = new URL(input instanceof Request ? input.url : input);
      const page = url.searchParams.get("pageToken");
      pages.push(page ?? "first");
      const models = [{ name: `models/${page ?? "first"}` }];
      return Response.json({ models, ...(page === null && { nextPageToken: "second" }) });
    });
    expect(pages).toEqual(["first", "second"]);
    expect(listed.flatMap(({ names }) => names)).toEqual(["first", "second"]);
  });
});

/**
 * A row of each provider's list with every documented field, and the day on which the model ends.
 */
const ROWS: Readonly<Record<string, readonly [row: Fields, ends: string | null]>> = {
  openai: [
    { id: "m", object: "model", created: 1, owned_by: "openai", shutdown_date: "2027-01-20" },
    "2027-01-20",
  ],
  anthropic: [
    {
      id: "m",
      type: "model",
      display_name: "M",
      created_at: "2026-02-19T00:00:00Z",
      max_input_tokens: 1_000_000,
      max_tokens: 64_000,
      lifecycle: "deprecated",
      deprecated_at: "2026-10-01T00:00:00Z",
      retires_at: "2027-03-01T00:00:00Z",
    },
    "2027-03-01",
  ],
  google: [{ name: "models/m", inputTokenLimit: 1_048_576, outputTokenLimit: 65_536 }, null],
  mistral: [
    {
      id: "m",
      aliases: ["m-latest"],
      max_context_length: 131_072,
      deprecation: null,
      deprecation_replacement_model: null,
    },
    null,
  ],
  groq: [{ id: "m", object: "model", active: true, context_window: 131_072 }, null],
  deepseek: [{ id: "m", object: "model", owned_by: "deepseek" }, null],
  together: [
    {
      id: "m",
      context_length: 131_072,
      pricing: { hourly: 0, input: 0.6, output: 0.6, base: 0, cached_input: null },
    },
    null,
  ],
  fireworks: [
    { name: "m", contextLength: 131_072, deprecationDate: { year: 2027, month: 1, day: 2 } },
    "2027-01-02",
  ],
  xai: [
    {
      id: "m",
      aliases: [],
      prompt_text_token_price: 20_000,
      cached_prompt_text_token_price: 5000,
      completion_text_token_price: 100_000,
    },
    null,
  ],
  cohere: [{ name: "m", context_length: 256_000, is_deprecated: false }, null],
  elevenlabs: [{ model_id: "m", can_do_text_to_speech: true, token_cost_factor: 1 }, null],
};

/** Providers whose response is only the list. */
const LISTS = new Set(["together", "elevenlabs"]);

describe("the parser for providers' model lists", () => {
  it.each(PROVIDER_LISTS.map(({ provider }) => provider))(
    "accepts every documented field: %s",
    async (provider) => {
      const list = PROVIDER_LISTS.find((one) => one.provider === provider);
      const [row, ends] = ROWS[provider] ?? [{}, null];
      const page = LISTS.has(provider) ? [row] : { data: [row], models: [row] };
      if (list === undefined) throw new Error(`no list of ${provider}`);
      const [listed] = await readList(list, "key", async () => Response.json(page));
      expect(listed?.names).toContain("m");
      expect(listed).toMatchObject({ isRetired: false, ends });
    },
  );
});

/** The paths of the gateway's own base URLs. */
const BASE_PATHS: Readonly<Record<string, string>> = {
  google: "/v1beta",
  groq: "/openai/v1",
  fireworks: "/inference/v1",
  deepseek: "",
  cohere: "/v2",
};

it.each(PROVIDER_LISTS)(
  "the catalog check reads $provider's model list under the configured base URL, even a proxy's",
  (list) => {
    const base = BASE_PATHS[list.provider] ?? "/v1";
    const { origin } = new URL(list.baseUrl);
    for (const baseUrl of [list.baseUrl, origin + base, `${origin}${base}/`]) {
      expect(listUrl({ ...list, baseUrl }).href).toBe(origin + list.path);
    }
    const baseUrl = `https://proxy.example/models${base}`;
    expect(listUrl({ ...list, baseUrl }).href).toBe(`https://proxy.example/models${list.path}`);
  },
);

describe("the command admin catalog check", () => {
  let ids: readonly string[] = IDS("openai");
  let seenKey = "";
  const server = createServer((request, response) => {
    seenKey = request.headers.authorization ?? "";
    const isOpenAi =
      /^(?:\/proxy)?\/v1\/models$/.test(request.url ?? "") && seenKey === "Bearer sk-openai";
    response.writeHead(isOpenAi ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(isOpenAi ? data(ids) : {}));
  });
  let baseUrl = "";
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  const run = (args: readonly string[], key: string | null = "sk-openai") =>
    new Promise<{ code: number; out: string; error: string }>((resolve) => {
      const env = { PATH: process.env["PATH"] ?? "", OPENAI_BASE_URL: baseUrl };
      const command = ["scripts/admin.ts", "catalog", "check", ...args];
      execFile(
        process.execPath,
        command,
        { env: key === null ? env : { ...env, OPENAI_API_KEY: key } },
        (failure, out, error) =>
          resolve({ code: failure === null ? 0 : Number(failure.code), out, error }),
      );
    });

  it("exits with 0 if there are no findings, and prints the providers that it skipped", async () => {
    const { code, out, error } = await run([]);
    expect([code, out]).toEqual([0, "Checked: openai. No differences.\n"]);
    expect(error).toContain("Not checked, because their keys aren't set: anthropic,");
    expect(seenKey).toBe("Bearer sk-openai");
  });

  it("exits with 1 for a finding or an unreadable list, and with 2 if a key is missing", async () => {
    const all = ids;
    ids = all.slice(1);
    const found = await run(["--json"]);
    ids = all;
    expect(found.code).toBe(1);
    expect(JSON.parse(found.out)).toMatchObject({
      checked: ["openai"],
      findings: [{ upstream_id: all[0], finding: "missing" }],
    });
    const unread = await run([], "sk-wrong");
    expect([unread.code, unread.error.includes("openai: status 401")]).toEqual([1, true]);
    expect(unread.error + unread.out).not.toContain("sk-wrong");
    expect((await run([], null)).code).toBe(2);
    expect((await run(["--provider", "nobody"])).code).toBe(2);
  });
});
