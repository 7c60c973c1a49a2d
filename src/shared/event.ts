import { mintId } from "./id.ts";
import { sha256HexSync } from "./hash.ts";
import { parseStoredJson } from "./stored-json.ts";

/**
 * Event types. If a new type's data has a name or address, add that field to `ERASED_PATHS` in
 * event-log.do.ts. `eraseExternalId` replaces end users' names in `end_user`.
 */
export const EVENT_TYPES = [
  "balance.credited",
  "balance.charged",
  "balance.low",
  "purchase.created",
  "purchase.needs_customer",
  "purchase.credited",
  "purchase.declined",
  "purchase.expired",
  "payment.reversed",
  "payment.reinstated",
  "payment.forgiven",
  "top_up.paused",
  "top_up.disabled",
  "end_user.alert",
  "end_user.quota_reached",
  "end_user.changed",
  "key.created",
  "key.changed",
  "key.rotated",
  "key.revoked",
  "key.expiring",
  "key.budget_reached",
  "budget.reached",
  "budget.alert",
  "session.ended",
  "session.budget_reached",
  "pause.created",
  "pause.ended",
  "member.created",
  "member.changed",
  "member.removed",
  "invitation.created",
  "invitation.ended",
  "settings.changed",
  "organization.created",
  "organization.changed",
  "organization.wallet_rebuilt",
  "organization.events_left_out",
  "operator.viewed",
  "webhook.created",
  "webhook.changed",
  "webhook.rotated",
  "webhook.deleted",
  "webhook.disabled",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
/**
 * The webhook type of the usage stream. It isn't an event type, because the ledger already stores
 * its data.
 */
export const USAGE_SETTLED = "usage.settled";
export const WEBHOOK_EVENT_TYPES = [...EVENT_TYPES, USAGE_SETTLED] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

export const EVENT_LOG_PARTITIONS: readonly string[] = [
  ...new Set(["operator", ...EVENT_TYPES.map((type) => type.split(".", 1).join())]),
];

export function eventLogPartitionOf({ type, actor }: Pick<NewEvent, "type" | "actor">): string {
  return actor.kind === "operator" ? "operator" : type.split(".", 1).join();
}

/** The actor of an event. An operator's `id` is the operator's name. */
export type Actor =
  | { readonly kind: "key" | "session" | "member" | "operator"; readonly id: string }
  | { readonly kind: "system"; readonly id: null };
export const SYSTEM_ACTOR: Actor = { kind: "system", id: null };

export type EventData = { readonly [name: string]: unknown };

export type NewEvent = {
  readonly type: EventType;
  readonly actor: Actor;
  /** The ID of the event's object. For `end_user.*`, the external ID. */
  readonly subject: string;
  readonly data: EventData;
};

/** The actor and time (Unix ms) of a change. */
export type ChangeContext = { readonly actor: Actor; readonly now: number };

export type EventRecord = NewEvent & { readonly id: string; readonly createdAt: number };

export type StoredEvent = {
  id: string;
  type: EventType;
  actor_kind: Actor["kind"];
  actor_id: string | null;
  subject: string;
  data: string;
  created_at: number;
};

export function eventFromRow(row: StoredEvent): EventRecord {
  const { actor_kind: kind, actor_id: by } = row;
  return {
    id: row.id,
    type: row.type,
    createdAt: row.created_at,
    actor: kind === "system" || by === null ? SYSTEM_ACTOR : { kind, id: by },
    subject: row.subject,
    data: parseStoredJson<EventRecord["data"]>(row.data),
  };
}

const EVENT_ID = "evt_";
const DATA_CHARACTERS_MAX = 16_384;
const VALUE_CHARACTERS_MAX = 1000;
const VALUES_DEPTH_MAX = 3;

const DERIVED_CHARACTERS = 24;

export function mintEventId(nowMs: number): string {
  return mintId(EVENT_ID, nowMs);
}

/** Derives an event ID from values, so that retries record the event once. */
export function deriveEventId(...words: readonly (string | number | null)[]): string {
  return EVENT_ID + sha256HexSync(JSON.stringify(words)).slice(0, DERIVED_CHARACTERS);
}

/** Shortens event data to DATA_MAX characters. Lists the paths of removed values in `left_out`. */
export function truncateEventData(data: EventData): EventData {
  if (JSON.stringify(data).length <= DATA_CHARACTERS_MAX) return data;
  const omittedPaths: string[] = [];
  const shortened = {
    ...(shortenValue(data, "", omittedPaths) as EventData),
    left_out: omittedPaths,
  };
  return JSON.stringify(shortened).length <= DATA_CHARACTERS_MAX
    ? shortened
    : { left_out: ["data"] };
}

function shortenValue(value: unknown, path: string, omittedPaths: string[]): unknown {
  const isTooDeep = path.split(".").length > VALUES_DEPTH_MAX;
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (isObject && !isTooDeep) {
    const shortenedEntries = Object.entries(value).map(([name, one]) => {
      return [name, shortenValue(one, path === "" ? name : `${path}.${name}`, omittedPaths)];
    });
    return Object.fromEntries(shortenedEntries.filter(([, one]) => one !== undefined));
  }
  if ((JSON.stringify(value) ?? "").length <= VALUE_CHARACTERS_MAX) return value;
  omittedPaths.push(path);
  return undefined;
}

export function findFieldChanges<T extends object>(
  before: T,
  after: { readonly [K in keyof T]?: T[K] },
) {
  const changes: Record<string, { readonly from: unknown; readonly to: unknown }> = {};
  for (const [name, to] of Object.entries(after)) {
    const from: unknown = Reflect.get(before, name) ?? null;
    if (to === undefined || JSON.stringify(from) === JSON.stringify(to)) continue;
    changes[name] = { from, to };
  }
  return Object.keys(changes).length === 0 ? null : { changes };
}
