import { beforeAll, describe, expect, it } from "vitest";
import { errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { postKey } from "./key-client.ts";
import { upstreamBindings } from "./upstream.ts";

/**
 * Names of one model, as its author's clients and clients that remove or keep the author use them.
 */
const SONNET = [
  "anthropic/claude-sonnet-5",
  "claude-sonnet-5",
  "claude-sonnet-5-latest",
  "claude-sonnet-5-20260630",
  "claude-sonnet-5[1m]",
  "anthropic/claude-sonnet-5-latest",
];
const [ID = ""] = SONNET;
const OTHERS = ["anthropic/claude-opus-5.5", "claude-opus-5-5-latest", "claude-sonnet-5.5", "echo"];
/** Two aliases: one of that model, and one that resembles another author's model. */
const ALIASES = JSON.stringify({ smart: ID, "mock/best": ID });
const bindings = upstreamBindings({ ANTHROPIC_API_KEY: "k", RESIDENCY: "relaxed", ALIASES });

let poor: Account;
beforeAll(async () => {
  poor = await openAccount({ credits: 0 }); // nothing runs: an allowed model returns 402
});

const BODIES_BY_PATH = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "hi" }] },
  "/v1/responses": { input: "hi" },
  "/v1/messages": { max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
  "/v1/completions": { prompt: "hi" },
};

/**
 * Returns the status of a completion for each name: 402 if the key allows it, 403 if not, and 404
 * if it doesn't exist.
 */
async function allowed(key: string, names: readonly string[]) {
  const path = "/v1/chat/completions";
  const statuses: Record<string, number> = {};
  for (const model of names) {
    const body = { ...BODIES_BY_PATH[path], model };
    statuses[model] = (await send(path, { key, bindings, body })).status;
  }
  return statuses;
}
const each = (names: readonly string[], status: number) =>
  Object.fromEntries(names.map((name) => [name, status]));

async function limited(models: readonly string[]): Promise<{ id: string; key: string }> {
  const fields = { name: "limited", rpm_limit: 1000, allowed_models: models };
  const response = await postKey(poor.key, fields, { bindings });
  expect(response.status).toBe(201);
  return response.json();
}

function mint(key: string, models: readonly string[]): Promise<Response> {
  return send("/v1/sessions", { key, bindings, body: { allowed_models: models } });
}

describe("a model with several names", () => {
  it.each(SONNET)(
    "works under each name at every endpoint, and appears in GET /v1/models/{id}: %s",
    async (name) => {
      for (const [path, body] of Object.entries(BODIES_BY_PATH)) {
        const response = await send(path, {
          key: poor.key,
          bindings,
          body: { ...body, model: name },
        });
        expect([path, response.status]).toEqual([path, 402]);
      }
      const at = `/v1/models/${encodeURIComponent(name)}`;
      const shown = await send(at, { key: poor.key, bindings });
      expect([shown.status, await shown.json()]).toMatchObject([200, { id: ID }]);
    },
  );

  it("returns 404 for a nonexistent name in GET /v1/models/{id} and at completions", async () => {
    for (const name of ["claude-sonnet-9-latest", "smart-latest", "smart[1m]", "constructor"]) {
      const shown = await send(`/v1/models/${name}`, { key: poor.key, bindings });
      expect([name, shown.status, await allowed(poor.key, [name])]).toEqual([
        name,
        404,
        { [name]: 404 },
      ]);
    }
  });

  it.each(SONNET)(
    "works under every name with a key or session that allows only %s",
    async (name) => {
      const { key, ...record } = await limited([name]);
      expect(record).toMatchObject({ allowed_models: [ID] });
      const session = await mint(poor.key, [name]);
      const { token } = await session.json<{ token: string }>();
      const within = await mint(key, SONNET);
      expect(within.status).toBe(201);
      const { token: inner } = await within.json<{ token: string }>();
      for (const one of [key, token, inner]) {
        expect(await allowed(one, [...SONNET, "smart"])).toEqual(each([...SONNET, "smart"], 402));
        expect(await allowed(one, OTHERS)).toEqual(each(OTHERS, 403));
      }
    },
  );
});

describe("an alias in a key's allowed models", () => {
  it("allows only the alias, not the model behind the alias", async () => {
    const { key } = await limited(["smart"]);
    expect(await allowed(key, ["smart", ...SONNET, "mock/best"])).toEqual({
      smart: 402,
      ...each([...SONNET, "mock/best"], 403),
    });
    for (const name of SONNET) {
      const wider = await errorOf(await mint(key, ["smart", name]), 400);
      expect(wider.param).toBe("allowed_models[1]");
    }
  });

  it("must be listed by its exact name, because an author prefix such as mock/* includes no aliases", async () => {
    const { key } = await limited(["mock/*"]);
    expect(await allowed(key, ["mock/chat", "chat", "mock/best"])).toEqual({
      ...each(["mock/chat", "chat"], 402),
      "mock/best": 403,
    });
    expect((await errorOf(await mint(key, ["mock/best"]), 400)).param).toBe("allowed_models[0]");
    const member = await addMember(poor.orgId, "member");
    const fields = { name: "own", rpm_limit: 10, allowed_models: ["mock/*"] };
    const own = await postKey(member.key, fields, { bindings });
    const { id } = await own.json<{ id: string }>();
    const change = (models: readonly string[]) =>
      send(`/v1/keys/${id}`, {
        method: "PATCH",
        key: member.key,
        bindings,
        body: { allowed_models: models },
      });
    expect((await change(["mock/best"])).status).toBe(403);
    expect((await change(["chat", "mock/blind"])).status).toBe(200);
  });
});
