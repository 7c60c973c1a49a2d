import { CATALOG } from "../src/models/catalog/models.ts";
import type { ModelRouteEntry } from "../src/models/catalog/entry.ts";
import { formatRouteName } from "../src/models/routing/route-health.ts";
import type { FailedRequest } from "../src/shared/failed-request.ts";
import type { Failure } from "../src/shared/failure.ts";
import { errorDocsAnchorOf, errorResponseOf } from "../src/shared/http/failure-mapping.ts";
import { mintId } from "../src/shared/id.ts";
import { CALL_KINDS } from "../src/shared/kinds.ts";
import type { CallKind } from "../src/shared/kinds.ts";
import { micros } from "../src/shared/money.ts";
import type { Usage } from "../src/shared/usage.ts";
import type { HoldRequest, Settlement } from "../src/shared/contracts/wallet.ts";
import { FIRST_REGION } from "./region-names.ts";
import { seeded } from "./seeded.ts";
import { computeCost } from "../src/shared/cost.ts";

/** One paid request. Times are in Unix ms. The hold of a failed request is voided. */
export type DemoRequest = {
  readonly heldAt: number;
  readonly endedAt: number;
  readonly hold: HoldRequest;
} & (
  | { readonly settlement: Settlement; readonly failed: null }
  | { readonly settlement: null; readonly failed: FailedRequest }
);

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
export const DAYS = 90;

/** Models with their share of requests. */
const MODELS: readonly (readonly [id: string, part: number])[] = [
  ["anthropic/claude-sonnet-5.5", 0.3],
  ["openai/gpt-6.1-terra", 0.22],
  ["google/gemini-3.8-flash", 0.18],
  ["openai/gpt-5.4-mini", 0.14],
  ["anthropic/claude-opus-5.5", 0.06],
  ["openai/text-embedding-3-small", 0.1],
];
const USERS = 40;
/** Share of requests that cost nothing, because the provider failed. */
const VOIDED = 0.015;
/** Failures of providers, with their status, if they sent one. */
const CAUSES: readonly (readonly [why: string, status?: number])[] = [
  ["http_503", 503],
  ["overloaded", 429],
  ["http_500", 500],
  ["connection"],
];

export const USER_IDS: readonly string[] = Array.from(
  { length: USERS },
  (_, n) => `user_${String(n + 1).padStart(3, "0")}`,
);

/**
 * Returns the requests of the day `daysAgo` days before `nowMs`, none later than `nowMs`. The first
 * keys get the most requests.
 */
export function demoRequestsOf(
  daysAgo: number,
  nowMs: number,
  keyIds: readonly string[],
): DemoRequest[] {
  const random = seeded(daysAgo + 1);
  const start = Math.floor(nowMs / DAY_MS) * DAY_MS - daysAgo * DAY_MS;
  const weekday = new Date(start).getUTCDay();
  const isWeekend = weekday === 0 || weekday === 6;
  const grown = 30 + 60 * (1 - daysAgo / DAYS);
  const count = Math.round(grown * (isWeekend ? 0.4 : 1) * (0.8 + 0.4 * random()));
  const times = Array.from({ length: count }, () => start + timeOfDay(random));
  return times
    .filter((at) => at < nowMs - HOUR_MS / 60)
    .toSorted((a, b) => a - b)
    .map((at) => demoRequestAt(at, random, keyIds));
}

/** Returns a time of day in ms, mostly in office hours. */
function timeOfDay(random: () => number): number {
  return Math.floor(((random() + random() + random()) / 3) * 22 * HOUR_MS + HOUR_MS);
}

function demoRequestAt(at: number, random: () => number, keyIds: readonly string[]): DemoRequest {
  const [model, route] = modelOf(random());
  const { provider } = route;
  const { price } = route.prices[0];
  const isChat = price.output > 0;
  const streamed = isChat && random() < 0.6;
  const prompt = Math.round((isChat ? 900 : 200) + 18_000 * random() ** 3);
  const cacheRead = isChat && random() < 0.45 ? Math.round(prompt * (0.4 + 0.5 * random())) : 0;
  const output = isChat ? Math.round(40 + 2400 * random() ** 2) : 0;
  const usage: Usage = {
    input: prompt - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output,
    reasoning: 0,
  };
  const cost = computeCost(price, usage);
  const externalId = random() < 0.15 ? null : (USER_IDS[lowIndex(random(), USERS)] ?? null);
  const keyId = keyIds[lowIndex(random(), keyIds.length)] ?? "";
  const firstByteMs = Math.round(180 + 900 * random() ** 3);
  const durationMs = firstByteMs + Math.round(output * (6 + 8 * random()));
  const id = mintId("req_", at);
  const most = micros(cost * 3 + 100);
  const isVoided = random() < VOIDED;
  const generation = {
    model,
    provider,
    region: FIRST_REGION,
    keyId,
    externalId,
    streamed,
    usage,
    price,
  };
  const end = { firstByteMs, durationMs, estimated: false, finishReason: isChat ? "stop" : null };
  const request = {
    heldAt: at,
    hold: {
      id,
      least: cost,
      most,
      sure: cost,
      hasCap: true,
      tokens: { prompt, least: prompt + 1, most: prompt + output * 3 },
      model: { sent: model, id: model },
      externalId,
      keyId,
      peer: false,
      idempotency: null,
    },
  };
  if (isVoided) {
    const failed = failedRequestOf(route, request.hold, { at, streamed });
    return { ...request, endedAt: at + failed.durationMs, settlement: null, failed };
  }
  const settlement = { id, cost, generation: { ...generation, ...end } };
  return { ...request, endedAt: at + durationMs, settlement, failed: null };
}

/** Returns the record of a request whose provider failed, also after a retry. */
function failedRequestOf(
  { provider, upstreamId, kind }: DemoRoute,
  { id, keyId, externalId, model }: HoldRequest,
  { at, streamed }: { readonly at: number; readonly streamed: boolean },
): FailedRequest {
  const random = seeded(at);
  const [why, status] = CAUSES[Math.floor(random() * CAUSES.length)] ?? [""];
  const failure: Failure =
    why === "overloaded"
      ? { kind: "upstream_overloaded", retryAfterSeconds: 30 }
      : { kind: "upstream_error" };
  const { message, status: sentStatus } = errorResponseOf(failure);
  const failsAfterMs = Math.round(200 + 900 * random());
  const attempt = {
    route: formatRouteName({ provider, upstreamId }),
    why,
    ...(status !== undefined && { status }),
  };
  const first = { ...attempt, startedMs: 2, endedMs: failsAfterMs };
  const retryMs = failsAfterMs + 200;
  const retry = { ...attempt, startedMs: retryMs, endedMs: retryMs + failsAfterMs };
  const attempts = why === "overloaded" ? [first] : [first, retry];
  return {
    id,
    at,
    keyId,
    externalId,
    askedModel: model?.sent ?? null,
    model: model?.id ?? null,
    door: CALL_KINDS[kind].path,
    streamed,
    durationMs: 3 + (attempts.at(-1)?.endedMs ?? 0),
    clientLeftMs: null,
    error: { code: errorDocsAnchorOf(failure), message, status: sentStatus, param: null },
    attempts,
  };
}

/** Returns an index that is usually low. */
function lowIndex(random: number, length: number): number {
  return Math.floor(random ** 2.2 * length);
}

type DemoRoute = ModelRouteEntry & { readonly kind: CallKind };

function modelOf(random: number): readonly [id: string, route: DemoRoute] {
  let rest = random;
  const [id] = MODELS.find(([, part]) => (rest -= part) < 0) ?? MODELS[0] ?? [""];
  const entry = CATALOG.find((one) => one.id === id);
  const route = entry?.routes.find(({ regions }) => regions.includes(FIRST_REGION));
  if (route === undefined) throw new Error(`${id} is not sold in ${FIRST_REGION}`);
  return [id, { ...route, kind: entry?.kind ?? "chat" }];
}
