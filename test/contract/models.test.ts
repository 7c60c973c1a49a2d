import { beforeAll, describe, expect, it } from "vitest";
import { CALL_KINDS } from "../../src/shared/kinds.ts";
import { ENDPOINT_ROWS } from "../fixtures/endpoint-table.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import { upstreamBindings } from "./upstream.ts";
import { model, modelList } from "./response-schemas.ts";

const KIND_ROWS = Object.values(CALL_KINDS).flatMap((kind) =>
  ENDPOINT_ROWS.filter(({ path }) => kind.path === `/v1${path}`),
);

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const read = (path: string): Promise<Response> => send(path, { key });
const ids = async (bindings?: Env): Promise<string[]> => {
  const response = await send("/v1/models", { key, ...(bindings && { bindings }) });
  return modelList.parse(await response.json()).data.map((entry) => entry.id);
};

const statusOf = async (id: string): Promise<string> =>
  model.parse(await (await read(`/v1/models/${id}`)).json()).status;

describe("GET /v1/models", () => {
  it("returns models in OpenAI's format, with each ID only once", async () => {
    const response = await read("/v1/models");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    const { data } = modelList.parse(await response.json());
    expect(new Set(data.map((entry) => entry.id)).size).toBe(data.length);
    expect(data.find((entry) => entry.id === "sandbox/echo")?.owned_by).toBe("sandbox");
  });

  it("lists aliases with the gateway as owner", async () => {
    const { data } = modelList.parse(await (await read("/v1/models")).json());
    for (const alias of ["smart", "fast", "cheap", "embeddings/cheapest"]) {
      expect(data.find((entry) => entry.id === alias)?.owned_by).toBe("turnpike");
    }
  });

  it("lists each model for exactly one kind of endpoint", async () => {
    const { key: poor } = await openAccount({ credits: 0 }); // no request runs without credits
    for (const id of await ids()) {
      const responses = KIND_ROWS.map(({ path, body }) =>
        send(`/v1${path}`, { key: poor, method: "POST", body: body({ model: id, text: "a" }) }),
      );
      const statuses = (await Promise.all(responses)).map(({ status }) => status);
      const others = KIND_ROWS.slice(1).map(() => 404);
      expect([id, statuses.toSorted((a, b) => a - b)]).toEqual([id, [402, ...others]]);
    }
  });

  it("lists only models of providers with a configured secret", async () => {
    expect(await ids(upstreamBindings())).toContain("mock/chat");
    expect(await ids(upstreamBindings({ MOCK_API_KEY: undefined }))).not.toContain("mock/chat");
    expect(await ids()).not.toContain("openai/gpt-6-luna");
    expect(await ids(upstreamBindings({ OPENAI_API_KEY: "k", RESIDENCY: "relaxed" }))).toContain(
      "openai/gpt-6-luna",
    );
    const [ADMIN_TOKEN, PEER_OUT_US, PEER_IN_US] = Array.from({ length: 3 }, () =>
      crypto.randomUUID(),
    );
    const unpaid = { STRIPE_SECRET_KEY: undefined, STRIPE_WEBHOOK_SECRETS: undefined };
    const productionVars = { SANDBOX: undefined, ADMIN_TOKEN, PEER_OUT_US, PEER_IN_US, ...unpaid };
    expect(await ids(upstreamBindings(productionVars))).not.toContain("sandbox/echo");
  });

  it("returns a model's author and release date, whichever provider serves the model", async () => {
    const bindings = upstreamBindings({ OPENAI_API_KEY: "k", RESIDENCY: "relaxed" });
    const response = await send("/v1/models/openai/gpt-6-luna", { key, bindings });
    expect(model.parse(await response.json())).toEqual({
      id: "openai/gpt-6-luna",
      name: "openai/gpt-6-luna",
      canonical_slug: "openai/gpt-6-luna",
      display_name: "gpt-6-luna",
      object: "model",
      created: Date.UTC(2026, 8, 22) / 1000,
      owned_by: "openai",
      kind: "chat",
      context_length: 1_050_000,
      max_output_tokens: 128_000,
      input_modalities: ["text", "image"],
      architecture: {
        modality: "text+image->text",
        input_modalities: ["text", "image"],
        output_modalities: ["text"],
        tokenizer: "Other",
        instruct_type: null,
      },
      top_provider: {
        context_length: 1_050_000,
        max_completion_tokens: 128_000,
        is_moderated: false,
      },
      per_request_limits: null,
      default_parameters: null,
      supported_voices: null,
      links: { details: "/v1/models/openai/gpt-6-luna" },
      supported_parameters: expect.arrayContaining(["max_tokens", "n", "tools"]) as string[],
      pricing: {
        prompt: "0.0000001",
        completion: "0.0000005",
        input_cache_read: "0.00000001",
        input_cache_write: "0.000000125",
      },
      next_price: null,
      regions: ["eu"],
      providers: ["openai"],
      status: "operational",
      aliases: expect.any(Array) as string[],
    });
  });

  it("returns the input types and exact price of an embeddings model", async () => {
    const response = await read("/v1/models/sandbox/embed");
    expect(await response.json()).toMatchObject({
      kind: "embeddings",
      max_output_tokens: null,
      input_modalities: ["text"],
      pricing: { prompt: "0.000001", completion: "0" },
    });
  });

  it("lists images as an input of a model that edits images", async () => {
    const bindings = upstreamBindings({
      OPENAI_API_KEY: "k",
      XAI_API_KEY: "k",
      RESIDENCY: "relaxed",
    });
    const inputsOf = async (id: string) => {
      const listed = await send(`/v1/models/${id}`, { key, bindings });
      return (await listed.json<{ input_modalities: string[] }>()).input_modalities;
    };
    expect(await inputsOf("openai/gpt-image-2.5-flare")).toEqual(["text", "image"]);
    expect(await inputsOf("xai/grok-imagine-image-2.0")).toEqual(["text", "image"]);
    expect(await inputsOf("mock/blind")).toEqual(["text"]);
  });

  it("accepts a model name without the author if the name is unique, and returns 404 otherwise", async () => {
    const bindings = upstreamBindings({ OPENAI_API_KEY: "k", RESIDENCY: "relaxed" });
    const named = async (id: string) =>
      (await send(`/v1/models/${id}`, { key, bindings })).json<{ id?: string }>();
    expect((await named("gpt-6-luna")).id).toBe("openai/gpt-6-luna");
    expect((await named("blind")).id).toBe("mock/blind");
    const models = JSON.stringify(
      ["one/same", "two/same"].map((id) => ({
        id,
        kind: "chat",
        context: 1000,
        price: { input: 1, output: 1 },
        routes: [{ provider: "mock", upstream_id: "x" }],
      })),
    );
    const two = upstreamBindings({ MODELS: models });
    expect((await send("/v1/models/same", { key, bindings: two })).status).toBe(404);
    const request = { body: { model: "echo", messages: [{ role: "user", content: "hi" }] } };
    const response = await send("/v1/chat/completions", { key, ...request });
    expect((await response.json<{ model: string }>()).model).toBe("sandbox/echo");
    const ambiguousRequest = { body: { ...request.body, model: "same" }, bindings: two };
    await errorOf(await send("/v1/chat/completions", { key, ...ambiguousRequest }), 404);
  });

  it("never resolves an alias to a sandbox model while a real model is available", async () => {
    const bindings = upstreamBindings({ ALIASES: JSON.stringify({ smart: "mock/blind" }) });
    const aliases = await ids(bindings);
    expect(aliases).toContain("smart");
    const { data } = modelList.parse(await (await send("/v1/models", { key, bindings })).json());
    const blind = data.find((entry) => entry.id === "mock/blind");
    expect(data.find((entry) => entry.id === "smart")?.created).toBe(blind?.created);
  });

  it("shows a model and its only provider as unavailable while the provider is in cooldown", async () => {
    const endpointsOf = async (id: string): Promise<unknown> =>
      (await (await send(`/v1/models/${id}/endpoints`, { key })).json<{ data: object }>()).data;
    expect(await statusOf("sandbox/echo")).toBe("operational");
    expect((await chat(key, { model: "sandbox/echo-key-401" })).status).toBe(502);
    expect(await statusOf("sandbox/echo-key-401")).toBe("unavailable");
    expect(await endpointsOf("sandbox/echo-key-401")).toMatchObject({
      endpoints: [{ status: -1 }],
    });
    expect(await endpointsOf("sandbox/echo")).toMatchObject({ endpoints: [{ status: 0 }] });
    expect(await statusOf("sandbox/echo")).toBe("operational");
  });

  it.each(["/v1//models", "/v1/models/", "//v1/models", "/v1/models?limit=3"])(
    "accepts the path %s",
    async (path) => {
      expect((await read(path)).status).toBe(200);
    },
  );
});

describe("GET /v1/models/{id}", () => {
  it.each([
    ["sandbox/echo", "/v1/models/sandbox/echo"],
    ["sandbox/echo", "/v1/models/sandbox%2Fecho"],
    ["sandbox/echo", "/v1/models/sandbox%2fecho"],
    ["embeddings/cheapest", "/v1/models/embeddings/cheapest"],
    ["embeddings/cheapest", "/v1/models/embeddings%2Fcheapest"],
    ["smart", "/v1/models/smart"],
  ])("returns the model %s for the path %s", async (id, path) => {
    const response = await read(path);
    expect(response.status).toBe(200);
    expect(model.parse(await response.json()).id).toBe(id);
  });
});

describe("GET /v1/models/{id} for an unknown model", () => {
  it.each([
    "none",
    "no/such",
    "sandbox%252Fecho",
    "sandbox",
    "__proto__",
    "%F0%9F%8C%8D",
    "..%2Fx",
  ])("returns 404 model_not_found for the ID %s", async (id) => {
    const error = await errorOf(await read(`/v1/models/${id}`), 404);
    expect(error).toMatchObject({
      type: "invalid_request_error",
      code: "model_not_found",
      param: "model",
    });
  });
});
