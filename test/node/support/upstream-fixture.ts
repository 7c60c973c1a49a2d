import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";
import path from "node:path";
import { scenarioOf, startMockProvider } from "../../fixtures/openai-mock.ts";
import type { MockRequest, MockScript, MockProvider } from "../../fixtures/openai-mock.ts";
import type { RouteChanges } from "../../fixtures/route-changes.ts";
import { generations, resolved } from "./money.ts";
import { makeOrganization } from "./organization.ts";
import { openRaw } from "./raw-request.ts";
import type { RawConnection } from "./raw-request.ts";
import { ADMIN_TOKEN, startPersistentRegion } from "./two-regions.ts";
import type { TestRegion } from "./two-regions.ts";

export const CREDITS = 1_000_000_000;
/** The gateway's key at the provider, which must never appear elsewhere. */
export const UPSTREAM_SECRET = "sk-canary-5d41402abc4b2a76b9719d911017c592";

export type UpstreamOptions = {
  /**
   * The provider's names of each model's routes, in order. Input costs 1 micro-credit per token,
   * output 2.
   */
  readonly models: Readonly<Record<string, readonly string[]>>;
  /** The provider's behavior by its model name, besides the standard scenarios. */
  readonly scripts?: Readonly<Record<string, MockScript>>;
  readonly bindings?: Readonly<Record<string, string>>;
  /** An unused port, for routes named `refused`. */
  readonly deadPort?: number;
  /** Prices, limits and abilities that MODELS can't express. Required for `later`. */
  readonly changes?: RouteChanges;
  /** Maximum output tokens of a model, by default 4,096. */
  readonly maxOutput?: number;
  /** An entry that wraps the gateway's own. Not allowed with `changes`. */
  readonly entry?: string;
};
export type Organization = { readonly orgId: string; readonly key: string };
export type SentRequest = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
};
export type UpstreamFixture = {
  readonly eu: TestRegion;
  readonly mock: MockProvider;
  /** Returns the number of requests that the provider is answering. */
  readonly inFlight: () => number;
  readonly organization: (credits?: number) => Promise<Organization>;
  /** Sends a chat completion and reads the whole response. */
  readonly send: (key: string, model: string, more?: object) => Promise<SentRequest>;
  /** Sends a chat completion on a raw connection. */
  readonly open: (key: string, model: string, more?: object) => Promise<RawConnection>;
  /** Waits until nothing is held. Returns the spend and its requests. */
  readonly spent: (orgId: string) => ReturnType<typeof spentOf>;
  /** Moves the clock of the EU's route health by ms. */
  readonly later: (ms: number) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Clients of `send` by model, notified of the first bytes of each response. */
const readers = new EventEmitter().setMaxListeners(0);

/** Waits until the client of this model has read some of its response. */
export async function waitUntilRead(request: MockRequest): Promise<void> {
  await once(readers, String(request.json["model"]));
}

const ROUTES_WORKER = path.join(import.meta.dirname, "../../fixtures/routes-worker.ts");
const REQUEST = { messages: [{ role: "user", content: "Say it" }], max_tokens: 100 };

/** Starts the EU region with a scripted provider that uses OpenAI's format on loopback. */
export async function startUpstreamFixture(options: UpstreamOptions): Promise<UpstreamFixture> {
  const mock = await startMockProvider();
  const inFlight = new Set<ServerResponse>();
  const credited = new Map<string, number>();
  mock.script((request, response) => {
    inFlight.add(response);
    response.on("close", () => inFlight.delete(response));
    return options.scripts?.[scenarioOf(request)]?.(request, response) ?? false;
  });
  const bindings = {
    UPSTREAM_KEY: UPSTREAM_SECRET,
    PROVIDERS: JSON.stringify(providersOf(mock, options)),
    MODELS: JSON.stringify(Object.entries(options.models).map((model) => modelOf(model, options))),
    ROUTES: JSON.stringify(options.changes ?? {}),
    ...options.bindings,
  };
  const entry = options.changes === undefined ? options.entry : ROUTES_WORKER;
  const kept = await startPersistentRegion(bindings, { entry });
  const eu = kept.region();
  const url = `${eu.baseUrl}/chat/completions`;
  return {
    eu,
    mock,
    inFlight: () => inFlight.size,
    organization: async (credits = CREDITS) => {
      const organization = await makeOrganization(eu.adminUrl, ADMIN_TOKEN, {
        credits,
        rpmLimit: 1000,
      });
      credited.set(organization.orgId, credits);
      return organization;
    },
    send: async (key, model, more = {}) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, ...REQUEST, ...more }),
      });
      const { status, headers } = response;
      const parts: Uint8Array[] = [];
      for await (const part of response.body ?? []) {
        parts.push(part);
        if (parts.length === 1) readers.emit(model);
      }
      return { status, headers, text: Buffer.concat(parts).toString() };
    },
    open: (key, model, more = {}) =>
      openRaw({
        url,
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model, ...REQUEST, ...more }),
      }),
    spent: (orgId) => spentOf(eu, orgId, credited.get(orgId) ?? 0),
    later: async (ms) => {
      const answer = await fetch(`${eu.url}__later`, { method: "POST", body: String(ms) });
      if (!answer.ok) throw new Error("the world has no changes, so its time does not move");
    },
    stop: async () => {
      await kept.stop();
      await mock.close();
    },
  };
}

/** Returns a script that never falls back to the standard scenarios. */
export function scripted(
  run: (response: ServerResponse, request: MockRequest) => Promise<void> | void,
): MockScript {
  return async (request, response) => {
    await run(response, request);
    return true;
  };
}

export function startStream(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
}

/** Parses the data of each event of a stream. Comments and [DONE] stay unchanged. */
export function eventsOf(text: string): unknown[] {
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      if (!event.startsWith("data: ") || event === "data: [DONE]") return event;
      return JSON.parse(event.slice("data: ".length)) as unknown;
    });
}

type Chunk = { readonly choices?: readonly { readonly delta?: { readonly content?: string } }[] };

/** Returns the text of a stream's chunks. */
export function contentOf(text: string): string {
  return eventsOf(text)
    .map((event) => (event as Chunk).choices?.[0]?.delta?.content ?? "")
    .join("");
}

async function spentOf(eu: TestRegion, orgId: string, credits: number) {
  const balance = await resolved(eu, orgId);
  const records = await generations(eu, orgId);
  const micro = credits - balance.credits_micro;
  return { micro, held: balance.held_micro, records };
}

function providersOf(mock: MockProvider, { deadPort }: UpstreamOptions): object[] {
  const common = { profile: "generic", secret: "UPSTREAM_KEY", regions: ["eu"] };
  const dead = { ...common, id: "dead", base_url: `http://127.0.0.1:${deadPort}/v1` };
  return [{ ...common, id: "up", base_url: mock.url }, ...(deadPort === undefined ? [] : [dead])];
}

function modelOf(
  [id, names]: [string, readonly string[]],
  { maxOutput = 4096 }: UpstreamOptions,
): object {
  const routes = names.map((name) => ({
    provider: name.startsWith("refused") ? "dead" : "up",
    upstream_id: name,
  }));
  const price = { input: 1_000_000, output: 2_000_000 };
  return {
    id,
    kind: "chat",
    context: Math.max(128_000, 2 * maxOutput),
    max_output: maxOutput,
    price,
    routes,
  };
}
