import * as z from "zod/mini";
import { KEY_TERMS } from "../shared/key-terms.ts";
import { timestamp } from "../shared/clock.ts";
import { success } from "../shared/failure.ts";
import {
  timeParameterSchema,
  singleValueSchema,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../shared/http/parse-body.ts";
import { lowestIdAt, creationTimeOfId, mintId } from "../shared/id.ts";
import { logEvent, logWarning, errorMessageOf } from "../shared/log.ts";
import { isSlug } from "../accounts/organizations/organization.ts";
import { findOrganizationIdBySlug } from "../accounts/organizations/organizations.store.ts";
import {
  insertOperatorEvent,
  listOperatorEvents,
  OPERATOR_EVENT_ID_PREFIX,
} from "./operator-events.store.ts";
import type { ListedOperatorEvent, OperatorEvent } from "./operator-events.store.ts";
import type { OperatorCall } from "./operator-context.ts";

/** Records an operator's change in the log and in D1. If D1 fails, the change stays valid. */
export async function recordOperatorChange(
  { db, actor, requestId, now }: OperatorCall,
  about: Pick<OperatorEvent, "act" | "orgId" | "target" | "details">,
): Promise<void> {
  const { act, orgId, target } = about;
  const operator = actor.id ?? "";
  const org = orgId === null ? {} : { org_id: orgId };
  logEvent("operator_act", { operator, act, ...org, ...target, request_id: requestId });
  const id = mintId(OPERATOR_EVENT_ID_PREFIX, now);
  try {
    await insertOperatorEvent(db, { ...about, id, operator, requestId });
  } catch (error) {
    logWarning("operator_event_not_stored", {
      act,
      request_id: requestId,
      reason: errorMessageOf(error),
    });
  }
}

export const operatorEventsQuerySchema = z.object({
  org: z.optional(singleValueSchema.check(z.minLength(1), z.maxLength(100))),
  operator: z.optional(singleValueSchema.check(z.minLength(1), z.maxLength(100))),
  from: z.optional(timeParameterSchema),
  to: z.optional(timeParameterSchema),
  limit: wholeNumberParameterWithDefault(1, 100, 50),
  after: z.optional(
    singleValueSchema.check(z.regex(/^opev_[0-9A-Za-z]{24}$/, "must be an event's id")),
  ),
});

/** Handles `GET /events`. */
export async function getOperatorEvents(call: OperatorCall) {
  const query = parseQuery(operatorEventsQuerySchema, call.url);
  if (!query.ok) return query;
  const { org, operator = null, limit, after, from = 0, to } = query.value;
  const orgId =
    org !== undefined && isSlug(org) ? await findOrganizationIdBySlug(call.db, org) : org;
  if (orgId === null) return success({ events: [], next_after: null });
  const rows = await listOperatorEvents(call.db, {
    ...idRangeOfPage(OPERATOR_EVENT_ID_PREFIX, { after, from, to }),
    orgId: orgId ?? null,
    operator,
    limit,
  });
  const events = rows.slice(0, limit);
  const nextAfter = rows.length > limit ? (events.at(-1)?.id ?? null) : null;
  return success({ events: events.map(eventView), next_after: nextAfter });
}

/** Returns the range of event IDs for a time range and page. IDs contain their creation time. */
export function idRangeOfPage(
  prefix: string,
  { after = "~", from, to }: { after?: string | undefined; from: number; to: number | undefined },
): { readonly beforeId: string; readonly fromId: string } {
  const until = to === undefined ? "~" : lowestIdAt(prefix, to);
  return { beforeId: after < until ? after : until, fromId: lowestIdAt(prefix, from) };
}

function eventView(event: ListedOperatorEvent) {
  const { id, operator, act, orgId, slug, name, target, details, keyName, memberEmail } = event;
  return {
    id,
    created_at: timestamp(creationTimeOfId(id, OPERATOR_EVENT_ID_PREFIX) ?? 0),
    operator,
    act: act.replaceAll(/:(\w+)/g, "{$1}"),
    organization: orgId === null ? null : { id: orgId, slug, name },
    target,
    target_name: keyName ?? memberEmail,
    details: details ?? {},
    request_id: event.requestId,
  };
}

type Details = Readonly<Record<string, unknown>>;

/**
 * The body fields that a change's event stores, without names, addresses and secrets. Only
 * operators see the free text of `reason` and `reference`.
 */
const STORED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "PATCH /orgs/:id": ["status", "reason", "rpm_limit", "price_list", "operator_policy"],
  "POST /orgs/:id/invitations": ["role"],
  "POST /orgs/:id/members": ["role"],
  "PATCH /orgs/:id/members/:member_id": ["role"],
  "PATCH /orgs/:id/keys/:key_id": [
    "rpm_limit",
    "tpm_limit",
    "budget_dollars",
    "budget_period",
    "allowed_models",
  ],
  "POST /orgs/:id/pauses": ["scope", "reason", "until"],
  "POST /orgs/:id/credits": ["amount_micro", "reference"],
  "POST /orgs/:id/purchases/:purchase_id/refund": ["amount_cents", "reason"],
  "POST /orgs/:id/owed": ["forgive_micro", "reference"],
  "POST /rerate": ["id", "model"],
};
/** Body fields that events store by name only, because they are names, addresses or long values. */
const NAME_ONLY_FIELDS: ReadonlySet<string> = new Set([
  "name",
  "slug",
  "email",
  ...Object.values(KEY_TERMS).map(({ field }) => field),
]);
const PRICES_MAX = 5;
const PRICE_FIELDS = ["list", "item", "from", "price", "percent"];

/** Returns a change's details to store, or null. */
export function extractChangeDetails(act: string, body: unknown, response: object): Details | null {
  const sent = Object.entries(body instanceof Object ? body : {});
  const stored = STORED_FIELDS[act] ?? [];
  const others = sent
    .map(([name]) => name)
    .filter((name) => NAME_ONLY_FIELDS.has(name) && !stored.includes(name));
  const returned = Object.fromEntries(Object.entries(response));
  const details: Details = {
    ...Object.fromEntries(sent.filter(([name]) => stored.includes(name))),
    ...(act.startsWith("PATCH ") && others.length > 0 && { other_fields: others }),
    ...(act.endsWith("/refund") && { purchase_dollars: returned["amount_dollars"] }),
    ...(act === "POST /rerate" && { dry_run: returned["dry_run"] }),
    ...(act === "POST /prices" && toPriceEventDetails(returned["prices"])),
  };
  return Object.keys(details).length === 0 ? null : details;
}

export function toPriceEventDetails(prices: unknown): Details {
  const rows: readonly unknown[] = Array.isArray(prices) ? prices : [];
  return {
    prices: rows.slice(0, PRICES_MAX).map((row) => pickFields(row, PRICE_FIELDS)),
    price_count: rows.length,
  };
}

function pickFields(row: unknown, names: readonly string[]): Details {
  const entries = Object.entries(row instanceof Object ? row : {});
  return Object.fromEntries(entries.filter(([name]) => names.includes(name)));
}
