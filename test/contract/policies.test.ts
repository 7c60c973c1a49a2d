import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { effort } from "../effort.ts";
import { admin, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { mint } from "./session-client.ts";
import { upstreamBindings, upstreamCompletion, upstreamError } from "./upstream.ts";

type Lists = Readonly<
  Record<"allowed_models" | "allowed_providers" | "allowed_data_regions", readonly string[] | null>
>;
const PROVIDERS = [
  ["home", "eu"],
  ["spare", "eu"],
  ["world", "global"],
] as const;
const MODELS = ["acme/one", "other/two", "acme/vector"] as const;
const REGION_OF: ReadonlyMap<string, string> = new Map(PROVIDERS);
const route = (provider: string, id: string) => ({ provider, upstream_id: `${provider}:${id}` });
const VARS = {
  RESIDENCY: "relaxed",
  PROVIDERS: JSON.stringify(
    PROVIDERS.map(([id, region]) => ({
      id,
      base_url: `https://${id}.models.test/v1`,
      profile: "generic",
      secret: "MOCK_API_KEY",
      regions: [region],
    })),
  ),
  MODELS: JSON.stringify(
    MODELS.map((id) => ({
      id,
      kind: id.endsWith("vector") ? "embeddings" : "chat",
      context: 8192,
      price: id.endsWith("vector") ? { input: 20_000 } : { input: 150_000, output: 600_000 },
      routes: PROVIDERS.map(([provider]) => route(provider, id)),
    })),
  ),
  ALIASES: JSON.stringify({ fast: "other/two" }),
};
const said = [{ role: "user", content: "hi" }];
/** The endpoints and their bodies. */
const ENDPOINTS = [
  ["/v1/chat/completions", { messages: said, max_tokens: 9 }],
  ["/v1/chat/completions", { messages: said, max_tokens: 9, stream: true }],
  ["/v1/completions", { prompt: "hi", max_tokens: 9 }],
  ["/v1/responses", { input: "hi", max_output_tokens: 16 }],
  ["/v1/messages", { messages: said, max_tokens: 9 }],
  ["/v1/embeddings", { input: "hi" }],
] as const;

/** Records the provider and model of each call. Providers in `failing` return 500. */
function upstream(failing: readonly string[]): readonly string[] {
  const calls: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const [provider = ""] = new URL(request.url).host.split(".");
    if (!REGION_OF.has(provider)) return new Response("", { status: 503 });
    const { model } = await request.json<{ model: string }>();
    expect(model.startsWith(`${provider}:`)).toBe(true);
    calls.push(model);
    if (failing.includes(provider)) return upstreamError(500, { message: "down" });
    const data = [{ object: "embedding", index: 0, embedding: [1] }];
    const usage = { prompt_tokens: 1, total_tokens: 1 };
    return model.endsWith("vector")
      ? Response.json({ object: "list", data, model, usage })
      : upstreamCompletion();
  });
  return calls;
}

const subsetOf = (...all: readonly string[]) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, fc.subarray([...all]));
const lists: fc.Arbitrary<Lists> = fc.record({
  allowed_models: subsetOf("acme/*", "acme/one", "other/two"),
  allowed_providers: subsetOf("home", "spare", "world"),
  allowed_data_regions: subsetOf("eu", "global", "us"),
});
const policies = fc.option(lists, { freq: 2, nil: null });
const cases = fc.record({
  operator: policies,
  organization: policies,
  member: policies,
  key: policies,
  session: policies,
  model: fc.constantFrom(...MODELS, "fast"),
  endpoint: fc.constantFrom(...ENDPOINTS),
  failing: fc.subarray(PROVIDERS.map(([id]) => id)),
});

function has(list: readonly string[] | null, ...names: string[]): boolean {
  return list === null || names.some((name) => list.includes(name));
}

/** The rule, as the documentation states it. */
function permits(policy: Lists | null, model: string, provider: string): boolean {
  if (policy === null) return true;
  const author = `${model.split("/")[0]}/*`;
  return (
    has(policy.allowed_models, model, author) &&
    has(policy.allowed_providers, provider) &&
    has(policy.allowed_data_regions, REGION_OF.get(provider) ?? "")
  );
}

async function done(response: Promise<Response>): Promise<void> {
  const { status } = await response;
  expect([200, 201]).toContain(status);
}

async function setAll(account: Account, asked: Record<string, Lists | null>): Promise<string> {
  const { key, keyId, memberId, orgId } = account;
  const patch = (path: string, policy: unknown) =>
    done(send(path, { key, method: "PATCH", body: { policy } }));
  await done(admin("PATCH", `/orgs/${orgId}`, { operator_policy: asked["operator"] }));
  await patch(`/v1/orgs/${orgId}/settings`, asked["organization"]);
  await patch(`/v1/members/${memberId}`, asked["member"]);
  const { token } = await mint(key, { policy: asked["session"] });
  await patch(`/v1/keys/${keyId}`, asked["key"]); // last, because a limited key manages nothing
  return token;
}

describe("the policies of operator, organization, member, key and session", () => {
  it("together allow calls to exactly the providers that each of them allows", async () => {
    const account = await openAccount();
    const sizes = new Set<number>(); // of the allowed sets, so that the property can't become vacuous
    await fc.assert(
      fc.asyncProperty(cases, async ({ model, endpoint: [path, fields], failing, ...asked }) => {
        const owner = await ownerKey(account);
        const token = await setAll({ ...account, ...owner }, asked);
        const id = model === "fast" ? "other/two" : model;
        const isServed = path.endsWith("embeddings") === id.endsWith("vector");
        const allowed = PROVIDERS.map(([provider]) => provider).filter((provider) =>
          Object.values(asked).every((policy) => permits(policy, id, provider)),
        );
        sizes.add(allowed.length);
        const calls = upstream(failing);
        const bindings = upstreamBindings(VARS); // no route is in cooldown
        const response = await send(path, { key: token, body: { model, ...fields }, bindings });
        await response.body?.cancel();
        vi.restoreAllMocks();
        const first = allowed.findIndex((provider) => !failing.includes(provider));
        const wanted = first < 0 ? allowed : allowed.slice(0, first + 1);
        expect([...new Set(calls)]).toEqual(
          isServed ? wanted.map((provider) => `${provider}:${id}`) : [],
        );
        expect(response.status === 403).toBe(isServed && allowed.length === 0);
        const models = await send("/v1/models", { key: token, bindings });
        const { data } = await models.json<{ data: { id: string; providers: string[] }[] }>();
        expect(data.find((one) => one.id === model)?.providers ?? []).toEqual(allowed);
      }),
      { numRuns: effort(40, 1000) },
    );
    expect(sizes.size).toBeGreaterThan(2);
  });

  it("name the policy that rejects a request", async () => {
    const account = await openAccount();
    const settings = `/v1/orgs/${account.orgId}/settings`;
    const body = { policy: { allowed_providers: ["nobody"] } };
    await done(send(settings, { key: account.key, method: "PATCH", body }));
    const asked = { model: "sandbox/echo", messages: said };
    const refused = await send("/v1/chat/completions", { key: account.key, body: asked });
    expect(await errorOf(refused, 403)).toMatchObject({
      code: "route_not_allowed",
      param: "model",
      scope: "organization",
      policy_field: "allowed_providers",
    });
    const counted = await send("/v1/messages/count_tokens", { key: account.key, body: asked });
    expect(counted.status).toBe(403);
    const shown = await send(settings, { key: account.key });
    expect(await shown.json()).toMatchObject({
      policy: { allowed_models: null, allowed_providers: ["nobody"], allowed_data_regions: null },
      operator_policy: null,
    });
  });

  it("apply to count_tokens too, which counts only for a key's allowed models", async () => {
    const account = await openAccount();
    const limited = { key: account.key, method: "PATCH", body: { allowed_models: ["smart"] } };
    await done(send(`/v1/keys/${account.keyId}`, limited));
    const count = async (model: string) => {
      const body = { model, messages: said };
      return (await send("/v1/messages/count_tokens", { key: account.key, body })).status;
    };
    expect([await count("smart"), await count("sandbox/echo")]).toEqual([200, 403]);
  });
});

/** Another key of the owner. */
async function ownerKey({ orgId, memberId }: Account): Promise<{ keyId: string; key: string }> {
  const body = { name: "of a test", rpm_limit: 1000 };
  const made = await admin("POST", `/orgs/${orgId}/members/${memberId}/keys`, body);
  const { id, key } = await made.json<{ id: string; key: string }>();
  return { keyId: id, key };
}
