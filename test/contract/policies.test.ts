import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { effortFor } from "../effort.ts";
import { admin, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { MultipartForm } from "../../src/models/core/outgoing-body.ts";
import { FormFile } from "../../src/shared/http/form.ts";
import type { FormField } from "../../src/shared/http/form.ts";
import { CALL_KINDS } from "../../src/shared/kinds.ts";
import type { CallKind } from "../../src/shared/kinds.ts";
import { KIND_SAMPLES } from "../fixtures/endpoint-input-rows.ts";
import type { KindSample } from "../fixtures/endpoint-input-rows.ts";
import { INPUT_ENDPOINT_ROWS } from "../fixtures/endpoint-table.ts";
import { pngFile } from "../fixtures/png-file.ts";
import { createSession } from "./session-client.ts";
import { mockUpstream, upstreamBindings, upstreamCompletion, upstreamError } from "./upstream.ts";

type Lists = Readonly<
  Record<"allowed_models" | "allowed_providers" | "allowed_data_regions", readonly string[] | null>
>;
const PROVIDERS = [
  ["home", "eu"],
  ["spare", "eu"],
  ["world", "global"],
] as const;
const CHAT_MODELS = ["acme/one", "other/two"] as const;
const MODELS = [...CHAT_MODELS, ...Object.keys(KIND_SAMPLES).map((kind) => `acme/${kind}`)];
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
      kind: kindOf(id),
      context: 8192,
      price: sampleOf(id)?.price ?? { input: 150_000, output: 600_000 },
      routes: PROVIDERS.map(([provider]) => route(provider, id)),
    })),
  ),
  ALIASES: JSON.stringify({ fast: "other/two" }),
};
const messages = [{ role: "user", content: "hi" }];
const WAV = new FormFile("a.wav", "audio/wav", new TextEncoder().encode("RIFF\0\0\0\0WAVE"));
type Endpoint = readonly [path: string, fields: Readonly<Record<string, unknown>>];
/** The endpoints and their bodies. A body with a file is a form. */
const TEXT_ENDPOINTS: readonly Endpoint[] = [
  ["/v1/chat/completions", { messages, max_tokens: 9 }],
  ["/v1/chat/completions", { messages, max_tokens: 9, stream: true }],
  ["/v1/completions", { prompt: "hi", max_tokens: 9 }],
  ["/v1/responses", { input: "hi", max_output_tokens: 16 }],
  ["/v1/messages", { messages, max_tokens: 9 }],
  ["/v1/embeddings", { input: "hi" }],
];
const MEDIA_ENDPOINTS: readonly Endpoint[] = [
  ...INPUT_ENDPOINT_ROWS.map((row): Endpoint => {
    return [`/v1${row.path}`, { ...row.body({ model: "", text: "hi" }) }];
  }),
  ["/v2/rerank", { query: "hi", documents: ["hi"] }],
  ["/v1/images/edits", { prompt: "hi", image: pngFile(8, 8) }],
  ["/v1/audio/transcriptions", { file: WAV }],
];
/** The paths that aren't the main path of their kind. */
const OTHER_PATHS: ReadonlyMap<string, CallKind> = new Map([
  ["/v2/rerank", "rerank"],
  ["/v1/images/edits", "image"],
]);

function sampleOf(id: string): KindSample | undefined {
  return Object.entries(KIND_SAMPLES).find(([kind]) => id.endsWith(`/${kind}`))?.[1];
}

function sampleResponseOf(id: string): Response {
  const sample = sampleOf(id);
  if (sample === undefined) return upstreamCompletion();
  const { response } = sample;
  if (typeof response !== "string") return Response.json(response);
  return new Response(response, { headers: { "content-type": "audio/mpeg" } });
}

function kindOf(id: string): string {
  return sampleOf(id) === undefined ? "chat" : id.slice("acme/".length);
}

function kindServedAt(path: string): string {
  const main = Object.entries(CALL_KINDS).find(([, row]) => row.path === path)?.[0];
  return OTHER_PATHS.get(path) ?? main ?? "chat";
}

/** Records the provider and model of each call. Providers in `failing` return 500. */
function upstream(failing: readonly string[]): readonly string[] {
  const called: string[] = [];
  mockUpstream(({ url, body }) => {
    const [provider = ""] = new URL(url).host.split(".");
    const model = String(body["model"]);
    expect(REGION_OF.has(provider) && model.startsWith(`${provider}:`)).toBe(true);
    called.push(model);
    if (failing.includes(provider)) return upstreamError(500, { message: "down" });
    return sampleResponseOf(model);
  });
  return called;
}

async function sendTo(path: string, fields: object, sending: { key: string; bindings: Env }) {
  const entries: [string, unknown][] = Object.entries(fields);
  if (!entries.some(([, value]) => value instanceof FormFile)) {
    return send(path, { ...sending, body: fields });
  }
  const form = new MultipartForm(entries as readonly FormField[]);
  const body = new Uint8Array(await new Response(form.stream()).arrayBuffer());
  return send(path, { ...sending, headers: { "content-type": form.type }, body });
}

const subsetOf = (...all: readonly string[]) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, fc.subarray([...all]));
const lists: fc.Arbitrary<Lists> = fc.record({
  allowed_models: subsetOf("acme/*", ...MODELS),
  allowed_providers: subsetOf("home", "spare", "world"),
  allowed_data_regions: subsetOf("eu", "global", "us"),
});
const anyPolicy = fc.option(lists, { freq: 2, nil: null });
const anyLayers = fc.record({
  operator: anyPolicy,
  organization: anyPolicy,
  member: anyPolicy,
  key: anyPolicy,
  session: anyPolicy,
});
const failures = fc.subarray(PROVIDERS.map(([id]) => id));
const calls = fc.record({
  model: fc.constantFrom(...CHAT_MODELS, "fast", "acme/embeddings"),
  endpoint: fc.constantFrom(...TEXT_ENDPOINTS),
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

async function expectSuccess(response: Promise<Response>): Promise<void> {
  const { status } = await response;
  expect([200, 201]).toContain(status);
}

async function setPolicies(account: Account, policies: Layers): Promise<string> {
  const { key, keyId, memberId, orgId } = account;
  const patch = (path: string, policy: unknown) =>
    expectSuccess(send(path, { key, method: "PATCH", body: { policy } }));
  await expectSuccess(admin("PATCH", `/orgs/${orgId}`, { operator_policy: policies.operator }));
  await patch(`/v1/orgs/${orgId}/settings`, policies.organization);
  await patch(`/v1/members/${memberId}`, policies.member);
  const { token } = await createSession(key, { policy: policies.session });
  await patch(`/v1/keys/${keyId}`, policies.key); // last, because a limited key manages nothing
  return token;
}

type Call = { readonly model: string; readonly endpoint: Endpoint };
type Layers = Readonly<
  Record<"operator" | "organization" | "member" | "key" | "session", Lists | null>
>;

/** Sends a request and checks the called providers. Returns the number of allowed providers. */
async function expectAllowedCalls(
  { model, endpoint: [path, fields] }: Call,
  { layers, failing, token }: { layers: Layers; failing: string[]; token: string },
): Promise<number> {
  const id = model === "fast" ? "other/two" : model;
  const isServed = kindServedAt(path) === kindOf(id);
  const allowed = PROVIDERS.map(([provider]) => provider).filter((provider) =>
    Object.values(layers).every((policy) => permits(policy, id, provider)),
  );
  const called = upstream(failing);
  const bindings = upstreamBindings(VARS); // no route is in cooldown
  const response = await sendTo(path, { ...fields, model }, { key: token, bindings });
  await response.arrayBuffer();
  vi.restoreAllMocks();
  const first = allowed.findIndex((provider) => !failing.includes(provider));
  const expectedProviders = first < 0 ? allowed : allowed.slice(0, first + 1);
  const names = expectedProviders.map((provider) => `${provider}:${id}`);
  expect([path, ...new Set(called)]).toEqual([path, ...(isServed ? names : [])]);
  expect(response.status === 403).toBe(isServed && allowed.length === 0);
  expect(response.status === 200).toBe(isServed && first >= 0);
  const models = await send("/v1/models", { key: token, bindings });
  const { data } = await models.json<{ data: { id: string; providers: string[] }[] }>();
  expect(data.find((one) => one.id === model)?.providers ?? []).toEqual(allowed);
  return allowed.length;
}

describe("a policy of operator, organization, member, key or session", () => {
  const everyCall: readonly Call[] = MEDIA_ENDPOINTS.map((endpoint) => ({
    model: `acme/${kindServedAt(endpoint[0])}`,
    endpoint,
  }));
  /** Examples with one, two and all providers, so that each run has these cases. */
  const examples = [["home"], ["home", "world"], null].map((names): [Layers, never[], Call[]] => [
    {
      operator: null,
      organization: null,
      member: null,
      session: null,
      key: { allowed_models: null, allowed_providers: names, allowed_data_regions: null },
    },
    [],
    everyCall.slice(0, 1),
  ]);
  it.each<readonly [string, fc.Arbitrary<readonly Call[]>, number]>([
    ["text", fc.tuple(calls), effortFor(10, 1000)],
    ["media", fc.constant(everyCall), effortFor(5, 300)],
  ])(
    "allows %s calls only to providers that every policy allows",
    async (_, requestLists, numRuns) => {
      const account = await openAccount();
      const sizes = new Set<number>(); // of the allowed sets, so the property isn't vacuous
      await fc.assert(
        fc.asyncProperty(anyLayers, failures, requestLists, async (layers, failing, requests) => {
          const owner = await ownerKey(account);
          const token = await setPolicies({ ...account, ...owner }, layers);
          for (const one of requests) {
            sizes.add(await expectAllowedCalls(one, { layers, failing, token }));
          }
        }),
        { numRuns, examples },
      );
      expect(sizes.size).toBeGreaterThan(2);
    },
  );

  it("causes an error that names the rejecting policy", async () => {
    const account = await openAccount();
    const settings = `/v1/orgs/${account.orgId}/settings`;
    const body = { policy: { allowed_providers: ["nobody"] } };
    await expectSuccess(send(settings, { key: account.key, method: "PATCH", body }));
    const request = { model: "sandbox/echo", messages };
    const refused = await send("/v1/chat/completions", { key: account.key, body: request });
    expect(await errorOf(refused, 403)).toMatchObject({
      code: "route_not_allowed",
      param: "model",
      scope: "organization",
      policy_field: "allowed_providers",
    });
    const counted = await send("/v1/messages/count_tokens", { key: account.key, body: request });
    expect(counted.status).toBe(403);
    const shown = await send(settings, { key: account.key });
    expect(await shown.json()).toMatchObject({
      policy: { allowed_models: null, allowed_providers: ["nobody"], allowed_data_regions: null },
      operator_policy: null,
    });
  });

  it("applies to count_tokens, which rejects models that the key doesn't allow", async () => {
    const account = await openAccount();
    const limited = { key: account.key, method: "PATCH", body: { allowed_models: ["smart"] } };
    await expectSuccess(send(`/v1/keys/${account.keyId}`, limited));
    const count = async (model: string) => {
      const body = { model, messages };
      return (await send("/v1/messages/count_tokens", { key: account.key, body })).status;
    };
    expect([await count("smart"), await count("sandbox/echo")]).toEqual([200, 403]);
  });
});

async function ownerKey({ orgId, memberId }: Account): Promise<{ keyId: string; key: string }> {
  const body = { name: "of a test", rpm_limit: 1000 };
  const response = await admin("POST", `/orgs/${orgId}/members/${memberId}/keys`, body);
  const { id, key } = await response.json<{ id: string; key: string }>();
  return { keyId: id, key };
}
