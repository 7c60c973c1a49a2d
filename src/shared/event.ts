import { mintId } from "./id.ts";
import { sha256 } from "./hash.ts";
import { storedJson } from "./stored-json.ts";

/** What may be told, each by the name that readers filter by. */
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
  "key.created",
  "key.changed",
  "key.rotated",
  "key.revoked",
  "key.expiring",
  "key.budget_reached",
  "session.ended",
  "session.budget_reached",
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

/** Where events stand in the log: those of operators, and the others by what they happened to. */
export const EVENT_PARTITIONS: readonly string[] = [
  ...new Set(["operator", ...EVENT_TYPES.map((type) => type.split(".", 1).join())]),
];

/** The room of an event: each has a part of the log that no other can take. */
export function partitionOf({ type, actor }: Pick<NewEvent, "type" | "actor">): string {
  return actor.kind === "operator" ? "operator" : type.split(".", 1).join();
}

/** Who did it: a key, session or member by its id, an operator by name; nobody in particular for the system. */
export type Actor =
  | { readonly kind: "key" | "session" | "member" | "operator"; readonly id: string }
  | { readonly kind: "system"; readonly id: null };
export const SYSTEM: Actor = { kind: "system", id: null };

/** What an event says beside who and what: a small object of JSON, money in micros. */
export type EventData = { readonly [name: string]: unknown };

/** Something that happened to an organization, before the log has it. */
export type NewEvent = {
  readonly type: EventType;
  readonly actor: Actor;
  /** The id of what it happened to: a key's, an end user's external id, the organization's. */
  readonly subject: string;
  readonly data: EventData;
};

/** An event as the log keeps it; `createdAt` in Unix ms. */
export type EventRecord = NewEvent & { readonly id: string; readonly createdAt: number };

/** An event as a wallet's log and the book store it. */
export type StoredEvent = {
  id: string;
  type: EventType;
  actor_kind: Actor["kind"];
  actor_id: string | null;
  subject: string;
  data: string;
  created_at: number;
};

export function eventIn(row: StoredEvent): EventRecord {
  const { actor_kind: kind, actor_id: by } = row;
  return {
    id: row.id,
    type: row.type,
    createdAt: row.created_at,
    actor: kind === "system" || by === null ? SYSTEM : { kind, id: by },
    subject: row.subject,
    data: storedJson<EventRecord["data"]>(row.data),
  };
}

const EVENT_ID = "evt_";
/** An event's data is kept up to so many characters of JSON. */
const DATA_MAX = 16_384;
/** What of longer data is kept: each value up to so many characters. */
const VALUE_MAX = 1000;
const VALUES_DEPTH = 3;

const DERIVED_CHARACTERS = 24;

/** An id for an event that may happen any number of times. */
export function mintEventId(nowMs: number): string {
  return mintId(EVENT_ID, nowMs);
}

/** The id of an event that happens once for all of these words: told again, it is the same event. */
export function derivedEventId(...words: readonly (string | number | null)[]): string {
  return EVENT_ID + sha256(JSON.stringify(words)).slice(0, DERIVED_CHARACTERS);
}

/**
 * The data as the log keeps it. Of data that is too long the long values are left out, and `left_out` names them;
 * where even so it stays too long, only that is said.
 */
export function truncateData(data: EventData): EventData {
  if (JSON.stringify(data).length <= DATA_MAX) return data;
  const leftOut: string[] = [];
  const kept = { ...(shortOf(data, "", leftOut) as EventData), left_out: leftOut };
  return JSON.stringify(kept).length <= DATA_MAX ? kept : { left_out: ["data"] };
}

/** A value without the long ones in it, whose paths go to `leftOut`. */
function shortOf(value: unknown, path: string, leftOut: string[]): unknown {
  const isDeep = path.split(".").length > VALUES_DEPTH;
  const isPlain = value !== null && typeof value === "object" && !Array.isArray(value);
  if (isPlain && !isDeep) {
    const inner = Object.entries(value).map(([name, one]) => {
      return [name, shortOf(one, path === "" ? name : `${path}.${name}`, leftOut)];
    });
    return Object.fromEntries(inner.filter(([, one]) => one !== undefined));
  }
  if ((JSON.stringify(value) ?? "").length <= VALUE_MAX) return value;
  leftOut.push(path);
  return undefined;
}

/** What of `after` is not as in `before`, as an event's data says it: `{ changes: { name: { from, to } } }`; null: nothing. */
export function changesOf<T extends object>(before: T, after: { readonly [K in keyof T]?: T[K] }) {
  const changes: Record<string, { readonly from: unknown; readonly to: unknown }> = {};
  for (const [name, to] of Object.entries(after)) {
    const from: unknown = Reflect.get(before, name) ?? null;
    if (to === undefined || JSON.stringify(from) === JSON.stringify(to)) continue;
    changes[name] = { from, to };
  }
  return Object.keys(changes).length === 0 ? null : { changes };
}
