import { refuse, success } from "../../src/shared/failure.ts";
import { failureResponse } from "../../src/shared/http/failure-response.ts";
import type { Usage } from "../../src/shared/usage.ts";
import { Timers } from "../../src/shared/timers.ts";
import { micros } from "../../src/shared/money.ts";
import type { Model, Route } from "../../src/models/catalog/model.ts";
import { NO_PRICE_LISTS } from "../../src/models/catalog/price-lists.ts";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import type { ResponseWriter } from "../../src/models/core/endpoint-adapter.ts";
import type { NumericConfigVariables } from "../../src/shared/config/config.ts";
import { MetricCounts } from "../../src/events/metrics/tally.ts";
import { RunTimer } from "../../src/models/requests/run-timer.ts";
import { RunProgress } from "../../src/models/requests/paid-request.ts";
import type { GroupableWalletMethods } from "../../src/shared/contracts/wallet.ts";
import type {
  HomeClient,
  Run,
  RunServices,
  ServingRoute,
} from "../../src/models/requests/paid-request.ts";

export const CAP = 100;
export const CHOICES = 2;
export const LIKELY = 40;
export const USAGE: Usage = { input: 8, cacheRead: 4, cacheWrite: 0, output: 30, reasoning: 0 };

export const ROUTE: Route = {
  provider: "up",
  upstreamId: "m",
  dataRegion: "global",
  price: { input: 1_000_000, cached: 500_000, cacheWrite: 1_000_000, output: 2_000_000 },
};
export const SERVING: ServingRoute = {
  route: ROUTE,
  cap: CAP,
  capLoweredByMoney: false,
  isNative: false,
  dropped: [],
  attempts: 1,
  firstByteMs: 5,
};

export const MODEL: Model = {
  id: "up/m",
  kind: "chat",
  ownedBy: "up",
  created: 0,
  context: 128_000,
  maxOutput: 4096,
  minOutput: 1,
  abilities: ["vision", "tools"],
  imageTokens: 1445,
  estimateFactor: 1.5,
  routes: [ROUTE],
};

/** Returns the chat endpoint's writer of JSON and streamed responses. */
function replyOf(kind: "json" | "stream"): ResponseWriter {
  const body = {
    model: "m",
    messages: [{ role: "user", content: "x" }],
    stream: kind === "stream",
  };
  const parsed = chatEndpoint.parse(body, { header: () => undefined, query: () => undefined });
  if (!parsed.ok) throw new Error("the chat endpoint does not take a chat");
  return parsed.value.reply;
}
export const JSON_REPLY = replyOf("json") as Extract<ResponseWriter, { kind: "json" }>;
export const STREAM_REPLY = replyOf("stream") as Extract<ResponseWriter, { kind: "stream" }>;

/** The home region for a run in another region. It grants every hold. */
export const HOME: HomeClient = {
  authorize: async () => ({
    unanswered: false,
    result: success({ granted: micros(10_000) }),
  }),
  callStoredResponses: async () => refuse({ kind: "home_region_unreachable" }),
};

/** Returns a wallet of this region that grants every hold. */
export function walletOf(
  calls: Pick<GroupableWalletMethods, "settle" | "void">,
): GroupableWalletMethods {
  return {
    ...calls,
    hold: async () => success({ granted: micros(10_000) }),
    admitAndHold: () => Promise.reject(new Error("the key is admitted")),
  };
}

/** Passes a run's result on as a response. */
export function asResponse(give: (response: Response) => void): Run["respond"] {
  return (result) =>
    give(result instanceof Response ? result : failureResponse(result, "req_test"));
}

/** Returns a run of a chat request for two choices with the test's services. */
export function runOf(
  overrides: Partial<RunServices> = {},
  client: AbortSignal = new AbortController().signal,
): Run {
  const timers = new Timers();
  const here = {
    now: () => 7,
    region: "eu",
    tally: new MetricCounts(),
    home: null,
    providers: new Map(),
  };
  const services = { ...here, ...overrides } as RunServices;
  const { REQUEST_DEADLINE_S = 900, DRAIN_S = 20 } = (services.numbers ??
    {}) as Partial<NumericConfigVariables>;
  const limits = { deadlineMs: REQUEST_DEADLINE_S * 1000, drainMs: DRAIN_S * 1000 };
  return {
    id: "req_test",
    startedMs: 0,
    endpoint: chatEndpoint,
    caller: {
      keyId: "key_1",
      keyHash: "hash",
      orgId: "org_1",
      memberId: "member_1",
      scope: "regional",
      home: "eu",
    },
    admitsWithHold: false,
    bodyBytes: 100,
    request: {
      sent: "m",
      core: { kind: "chat", body: { model: "m", messages: [] } },
      model: MODEL,
      pricing: NO_PRICE_LISTS,
      routes: MODEL.routes,
      stream: true,
      user: null,
      dropped: [],
      reply: STREAM_REPLY,
      paramOf: undefined,
      native: null,
      keep: null,
      prompt: { bound: 90, estimate: 60, likely: LIKELY },
      cap: { whole: CAP, least: 64, choices: CHOICES, isAsked: true },
      choice: null,
      conversationHash: null,
      mayThink: false,
      bounds: { least: micros(1), sure: micros(1), most: micros(2) },
    },
    idempotency: null,
    progress: new RunProgress(null),
    services,
    timers,
    timer: new RunTimer(client, timers, { ...limits, now: services.now }),
    slot: undefined,
    respond: () => undefined,
  };
}
