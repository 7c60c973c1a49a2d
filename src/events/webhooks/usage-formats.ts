import type { UsageStreamRow, UsageStreamPage } from "../../shared/contracts/usage-stream.ts";
import type { SettledGeneration } from "../../shared/contracts/wallet.ts";
import { HOUR_MS, timestamp } from "../../shared/clock.ts";
import { sha256HexSync } from "../../shared/hash.ts";
import { COUNTED_UNITS, sumPromptTokens } from "../../shared/usage.ts";
import { deriveEventId, SYSTEM_ACTOR, USAGE_SETTLED } from "../../shared/event.ts";

/** A webhook's stored settings, with the credential encrypted. */
export type ReceiverSettings = {
  readonly eventName?: string;
  readonly customer?: string;
  readonly header?: string;
  readonly sealed?: string;
  readonly setAt?: number | undefined;
};
export type ReceiverSettingName = "credential" | "event_name" | "customer" | "header";

type UsageRow = UsageStreamRow & { readonly request: SettledGeneration };

type MeteredRequest = { readonly row: UsageRow; readonly customer: string; readonly micro: number };

type UsageFormat = {
  readonly path: string;
  readonly contentType: string;
  /** Maximum customer requests that one call reports. */
  readonly perCall: number;
  readonly requires: readonly ReceiverSettingName[];
  readonly accepts: readonly ReceiverSettingName[];
  readonly body: (requests: readonly MeteredRequest[], settings: ReceiverSettings) => string;
  readonly isRepeat?: (status: number | null, response: string) => boolean;
  /** Ms after which the receiver no longer detects a repeated request. */
  readonly repeatMs?: number;
  /**
   * True for trace formats, which include requests without a customer and skip rejected requests.
   */
  readonly isTrace?: true;
};

export const USAGE_FORMAT_NAMES = ["stripe_meter_events", "openmeter", "lago", "otlp"] as const;

const USAGE_FORMATS: Readonly<Record<(typeof USAGE_FORMAT_NAMES)[number], UsageFormat>> = {
  stripe_meter_events: {
    path: "/v1/billing/meter_events",
    contentType: "application/x-www-form-urlencoded",
    perCall: 1,
    requires: ["credential", "event_name"],
    accepts: ["customer"],
    body: ([one], { eventName }) =>
      new URLSearchParams(one && stripeEvent(one, eventName)).toString(),
    isRepeat: (status, response) =>
      status === 400 && response.includes("event already exists with identifier"),
    repeatMs: 23 * HOUR_MS, // Stripe compares identifiers for at least 24 hours
  },
  openmeter: {
    path: "/api/v1/events",
    contentType: "application/cloudevents-batch+json",
    perCall: 100,
    requires: ["event_name"],
    accepts: ["credential", "customer"],
    body: (requests, { eventName }) =>
      JSON.stringify(
        requests.map(({ row, customer, micro }) => ({
          specversion: "1.0",
          id: row.id,
          source: "turnpike",
          type: eventName,
          subject: customer,
          time: timestamp(row.createdAt),
          data: usageProperties(row, micro),
        })),
      ),
  },
  lago: {
    path: "/api/v1/events/batch",
    contentType: "application/json",
    perCall: 100,
    requires: ["credential", "event_name"],
    accepts: ["customer"],
    body: (requests, { eventName }) =>
      JSON.stringify({
        events: requests.map(({ row, customer, micro }) => ({
          transaction_id: row.id,
          external_subscription_id: customer,
          code: eventName,
          timestamp: row.createdAt / 1000,
          precise_total_amount_cents: formatDecimal(micro, 4),
          properties: usageProperties(row, micro),
        })),
      }),
    isRepeat: (status, response) => status === 422 && response.includes("value_already_exist"),
  },
  otlp: {
    path: "/v1/traces",
    contentType: "application/json",
    perCall: 100,
    requires: [],
    accepts: ["credential", "header"],
    body: (requests) => JSON.stringify(tracesBody(requests)),
    isTrace: true,
  },
};

export function findUsageFormat(format: string | null | undefined): UsageFormat | null {
  const name = USAGE_FORMAT_NAMES.find((one) => one === format);
  return name === undefined ? null : USAGE_FORMATS[name];
}

/** Returns the usage to send: requests with a customer, or all for traces. */
export function selectMeteredRequests(
  rows: readonly UsageStreamRow[],
  format: UsageFormat,
  { customer = "end_user" }: ReceiverSettings,
): readonly MeteredRequest[] {
  return rows.flatMap((row) => {
    if (!isUsage(row)) return [];
    const requestCustomer = customerOf(row.request, customer);
    if (requestCustomer === null && format.isTrace !== true) return [];
    return [{ row, customer: requestCustomer ?? "", micro: 0 - row.amountMicro }];
  });
}

/**
 * Returns the customer of a request. For a session, reads only tags that the session fixes, because
 * its user can set the others.
 */
function customerOf(
  { externalId, tags = {}, sessionTags }: SettledGeneration,
  by: string,
): string | null {
  if (!by.startsWith(TAG_CUSTOMER_PREFIX)) return externalId;
  const key = by.slice(TAG_CUSTOMER_PREFIX.length);
  if (sessionTags?.includes(key) === false) return null;
  return Object.hasOwn(tags, key) ? (tags[key] ?? null) : null;
}

/** Prefix of a `customer` setting that names a tag. */
export const TAG_CUSTOMER_PREFIX = "tag:";

function isUsage(row: UsageStreamRow): row is UsageRow {
  return row.kind === "usage" && (row.request ?? null) !== null;
}

function stripeEvent(
  { row, customer, micro }: MeteredRequest,
  eventName = "",
): Record<string, string> {
  return {
    event_name: eventName,
    identifier: row.id,
    timestamp: String(Math.floor(row.createdAt / 1000)),
    "payload[stripe_customer_id]": customer,
    "payload[value]": String(micro),
  };
}

function formatDecimal(integer: number, digits: number): string {
  const text = String(integer).padStart(digits + 1, "0");
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

function usageProperties(
  { request, seq }: UsageRow,
  micro: number,
): Record<string, string | number> {
  const { usage, purpose, tags = {} } = request;
  return {
    amount_micro: micro,
    amount_dollars: formatDecimal(micro, 6),
    quota_micro: purpose?.charged ?? 0,
    ledger_seq: seq,
    key_id: request.keyId,
    model: request.model,
    provider: request.provider,
    region: request.region,
    prompt_tokens: sumPromptTokens(usage),
    cached_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    completion_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    ...Object.fromEntries(COUNTED_UNITS.map((unit) => [`${unit}s`, usage[unit] ?? 0])),
    ...Object.fromEntries(Object.entries(tags).map(([key, value]) => [`tag_${key}`, value])),
  };
}

/** OpenTelemetry's provider names that differ from ours. */
const OTEL_PROVIDERS: Readonly<Record<string, string>> = {
  bedrock: "aws.bedrock",
  google: "gcp.gemini",
  mistral: "mistral_ai",
  vertex: "gcp.vertex_ai",
  xai: "x_ai",
  "xai-us": "x_ai",
};

function tracesBody(requests: readonly MeteredRequest[]): object {
  const service = [attribute("service.name", "turnpike")];
  const spans = requests.map(traceSpan);
  const scopeSpans = [{ scope: { name: "turnpike" }, spans }];
  return { resourceSpans: [{ resource: { attributes: service }, scopeSpans }] };
}

const CLIENT_SPAN_KIND = 3;

/** Returns a request's trace span. A retry gets the same IDs. */
function traceSpan({ row, micro }: MeteredRequest): object {
  const { request } = row;
  const hash = sha256HexSync(row.id);
  const [traceId = hash.slice(0, 32), parentSpanId] = request.trace?.split("-") ?? [];
  const operation = operationOf(request);
  return {
    traceId,
    spanId: hash.slice(32, 48),
    ...(parentSpanId !== undefined && { parentSpanId }),
    name: `${operation} ${request.model}`,
    kind: CLIENT_SPAN_KIND,
    startTimeUnixNano: formatNanoseconds(request.createdAt),
    endTimeUnixNano: formatNanoseconds(request.createdAt + Math.max(0, request.durationMs)),
    attributes: attributesOf(request, { id: row.id, micro, operation }),
    status: {},
  };
}

function formatNanoseconds(ms: number): string {
  return `${ms}000000`;
}

/**
 * Returns the operation's name. OpenTelemetry has names only for chat, embeddings and generated
 * content.
 */
function operationOf({ purpose, kind = "chat" }: SettledGeneration): string {
  if (purpose !== undefined) return "execute_tool";
  return kind === "image" ? "generate_content" : kind;
}

function attributesOf(
  request: SettledGeneration,
  { id, micro, operation }: { readonly id: string; readonly micro: number; operation: string },
): object[] {
  const { usage, provider, firstByteMs, externalId, tags = {} } = request;
  const values: Record<string, AttributeValue | null | undefined> = {
    "gen_ai.operation.name": operation,
    "gen_ai.provider.name": OTEL_PROVIDERS[provider] ?? provider,
    "gen_ai.request.model": request.model,
    "gen_ai.request.stream": request.streamed || null,
    "gen_ai.response.time_to_first_chunk": firstByteMs === null ? null : [firstByteMs / 1000],
    "gen_ai.usage.input_tokens": sumPromptTokens(usage),
    "gen_ai.usage.output_tokens": usage.output,
    "gen_ai.usage.cache_read.input_tokens": usage.cacheRead,
    "gen_ai.usage.cache_write.input_tokens": usage.cacheWrite,
    "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    "gen_ai.usage.cost": [micro / 1_000_000],
    "user.id": externalId,
    "turnpike.request_id": id,
    "turnpike.amount_micro": micro,
    "turnpike.key_id": request.keyId,
    "turnpike.region": request.region,
    ...Object.fromEntries(
      Object.entries(tags).map(([key, value]) => [`turnpike.tag.${key}`, value]),
    ),
  };
  const { finishReason } = request;
  const finish = { key: "gen_ai.response.finish_reasons", value: { arrayValue: { values: [] } } };
  return [
    ...Object.entries(values).flatMap(([key, value]) =>
      value === null || value === undefined ? [] : [attribute(key, value)],
    ),
    ...(finishReason === null
      ? []
      : [{ ...finish, value: { arrayValue: { values: [{ stringValue: finishReason }] } } }]),
  ];
}

/** An attribute's value. A number is sent as an integer, a list of one number as a double. */
type AttributeValue = string | number | boolean | readonly [number];

function attribute(key: string, value: AttributeValue): object {
  if (typeof value === "string") return { key, value: { stringValue: value } };
  if (typeof value === "boolean") return { key, value: { boolValue: value } };
  if (typeof value === "number") return { key, value: { intValue: String(value) } };
  return { key, value: { doubleValue: value[0] } };
}

/**
 * A webhook message with a page of ledger rows. Only `summary`, which has no amounts, is stored.
 */
type UsageMessage = {
  readonly id: string;
  readonly body: string;
  readonly summary: string;
};

/** Returns the webhook message for a page of ledger rows. The same rows always get the same ID. */
export function createUsageMessage(orgId: string, { from, rows }: UsageStreamPage): UsageMessage {
  const id = deriveEventId(USAGE_SETTLED, orgId, ...rows.map((row) => row.id));
  const last = rows.at(-1);
  const message = {
    id,
    type: USAGE_SETTLED,
    created_at: timestamp(last?.createdAt ?? from.madeAt),
    actor: SYSTEM_ACTOR,
    subject: orgId,
  };
  const range = {
    ledger_since: timestamp(from.madeAt),
    first_seq: rows[0]?.firstSeq ?? from.seq,
    last_seq: last?.seq ?? from.seq,
  };
  return {
    id,
    body: JSON.stringify({ ...message, data: { ...range, events: rows.map(rowView) } }),
    summary: JSON.stringify({ ...message, data: { ...range, count: rows.length } }),
  };
}

function rowView(row: UsageStreamRow): object {
  return {
    id: row.id,
    kind: row.kind,
    first_seq: row.firstSeq,
    seq: row.seq,
    amount_micro: row.amountMicro,
    balance_micro: row.balanceMicro,
    settled_at: timestamp(row.createdAt),
    reference: row.reference,
    request: row.request === null || row.request === undefined ? null : requestView(row.request),
  };
}

function requestView(request: SettledGeneration): object {
  const { usage, purpose } = request;
  const counted = COUNTED_UNITS.filter((unit) => (usage[unit] ?? 0) > 0);
  return {
    created_at: timestamp(request.createdAt),
    key_id: request.keyId,
    external_id: request.externalId,
    model: request.model,
    provider: request.provider,
    region: request.region,
    prompt_tokens: sumPromptTokens(usage),
    cached_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    completion_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    units: Object.fromEntries(counted.map((unit) => [unit, usage[unit]])),
    cost_micro: request.costMicro,
    quota_micro: purpose?.charged ?? 0,
    estimated: request.estimated,
    tags: request.tags ?? {},
  };
}
