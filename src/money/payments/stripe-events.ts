import * as z from "zod/mini";
import type { StubGetters } from "../../shared/contracts/objects.ts";
import type { StripeHint } from "../../shared/contracts/payments.ts";
import { logAlert } from "../../shared/log.ts";
import { callObjectWithRetries } from "../../shared/reach-object.ts";
import {
  chargeSchema,
  stripeEventSchema,
  stripeEventsSchema,
  paymentIntentSchema,
} from "./stripe-objects.ts";
import type { StripeEvent } from "./stripe-objects.ts";
import { buildGetCall, buildReadPaymentIntentCall } from "./stripe-calls.ts";
import { parseStripeBody, readStripeObject } from "./stripe.ts";
import type { StripeClient } from "./stripe.ts";

/** Handled event types and the kind of hint for each. Stripe lists at most 20 types per call. */
const EVENT_KINDS: Readonly<Record<string, StripeHint["kind"]>> = {
  "checkout.session.completed": "session",
  "checkout.session.async_payment_succeeded": "session",
  "checkout.session.async_payment_failed": "session",
  "checkout.session.expired": "session",
  "payment_intent.succeeded": "intent",
  "invoice.paid": "invoice",
  "invoice.payment_failed": "invoice",
  "invoice.payment_action_required": "invoice",
  "invoice.voided": "invoice",
  "charge.refunded": "back",
  "refund.created": "back",
  "refund.updated": "back",
  "refund.failed": "back",
  "charge.dispute.created": "back",
  "charge.dispute.updated": "back",
  "charge.dispute.closed": "back",
  "charge.dispute.funds_withdrawn": "back",
  "charge.dispute.funds_reinstated": "back",
  "radar.early_fraud_warning.created": "warning",
  "payment_method.detached": "detached",
};

/**
 * The time (Unix s) up to which all events were read. `rest` is an unfinished sweep, which must
 * still read the events before `beforeS`.
 */
export type EventSweepCursor = {
  readonly sinceS: number;
  readonly rest: { readonly beforeS: number; readonly startedS: number } | null;
};

/** D1 queries for the delivery of Stripe events. */
export type EventDispatchStore = {
  organizationOf(customerId: string): Promise<string | null>;
  isOrganization(orgId: string): Promise<boolean>;
  cursor(): Promise<EventSweepCursor | null>;
  moveCursor(to: EventSweepCursor): Promise<void>;
};

export type EventDispatchServices = StubGetters<"payments", "hint"> & {
  readonly store: EventDispatchStore;
  readonly stripe: StripeClient;
  readonly isLive: boolean;
};

/**
 * The result of an event. `none`: the event concerns no organization of this region. `unsure`:
 * the caller must retry.
 */
export type EventDispatchResult = "told" | "none" | "unsure";

/** Sends an event to its organization's payment object as a hint, which has only IDs. */
export async function dispatchEvent(
  to: EventDispatchServices,
  event: StripeEvent,
): Promise<EventDispatchResult> {
  const kind = EVENT_KINDS[event.type];
  if (kind === undefined || event.livemode !== to.isLive) return "none";
  const named = await idsOfEvent(to, event, kind);
  if (typeof named === "string") return named;
  const orgId = await to.store.organizationOf(named.customer);
  if (orgId === null) return handleUnknownCustomer(to, event);
  const hint = { eventId: event.id, orgId, kind, object: named.object };
  const reached = await callObjectWithRetries(() => to.payments(orgId).hint(hint));
  return !reached.unanswered && reached.result.ok ? "told" : "unsure";
}

async function handleUnknownCustomer(
  { store }: EventDispatchServices,
  { id, data }: StripeEvent,
): Promise<EventDispatchResult> {
  const orgId = data.object.metadata?.["org_id"];
  if (orgId !== undefined && (await store.isOrganization(orgId))) {
    logAlert("payment_of_unknown_customer", { org_id: orgId, event_id: id });
  }
  return "none";
}

type EventIds = { readonly object: string; readonly customer: string };
const ID = /^[a-z]+_[A-Za-z0-9_]{1,250}$/;

/**
 * Returns the IDs of the event's object and customer. If the event lacks the customer, reads it
 * from Stripe.
 */
async function idsOfEvent(
  to: EventDispatchServices,
  { data }: StripeEvent,
  kind: StripeHint["kind"],
): Promise<EventIds | EventDispatchResult> {
  const { object } = data;
  const id = object.id ?? "";
  if (!ID.test(id)) return "none";
  const customer = object.customer ?? data.previous_attributes?.customer ?? null;
  if (kind === "back" || kind === "warning") return idsOfMoney(to, object, customer);
  return customer === null ? "none" : { object: id, customer };
}

async function idsOfMoney(
  to: EventDispatchServices,
  { object: type, id, charge, payment_intent: paymentId }: StripeEvent["data"]["object"],
  customer: string | null,
): Promise<EventIds | EventDispatchResult> {
  if (!paymentId) return idsOfCharge(to, type === "charge" ? id : charge);
  return customer === null ? idsOfPayment(to, paymentId) : { object: paymentId, customer };
}

async function idsOfPayment(
  { stripe }: EventDispatchServices,
  id: string,
): Promise<EventIds | EventDispatchResult> {
  const intent = await readStripeObject(
    stripe,
    buildReadPaymentIntentCall(id),
    paymentIntentSchema,
  );
  if (typeof intent === "string") return intent;
  const { customer } = intent;
  return typeof customer === "string" ? { object: id, customer } : "none";
}

async function idsOfCharge(
  { stripe }: EventDispatchServices,
  id: string | null | undefined,
): Promise<EventIds | EventDispatchResult> {
  if (id === null || id === undefined) return "none";
  const charge = await readStripeObject(stripe, buildGetCall(`/v1/charges/${id}`), chargeSchema);
  if (typeof charge === "string") return charge;
  const { customer, payment_intent: object } = charge;
  const isComplete = typeof customer === "string" && typeof object === "string";
  return isComplete ? { object, customer } : "none";
}

/** Seconds before the cursor that a sweep reads again, because events can appear late. */
const OVERLAP_S = 3600;
/** Maximum age of swept events in seconds. Stripe stores events for 30 days. */
const EVENT_AGE_MAX_S = 29 * 86_400;
const PAGES_MAX = 50;

/**
 * Sends events since the last sweep to their organizations. The cursor stays before an event that
 * must be retried. Returns the number of events, or null if Stripe didn't respond.
 */
export async function dispatchMissedEvents(
  to: EventDispatchServices,
  nowMs: number,
): Promise<number | null> {
  const nowS = Math.floor(nowMs / 1000);
  const { sinceS, rest } = (await to.store.cursor()) ?? { sinceS: nowS, rest: null };
  const startedS = rest?.startedS ?? nowS;
  const gte = Math.max(sinceS - OVERLAP_S, nowS - EVENT_AGE_MAX_S);
  const swept = await sweepPages(to, { gte, ...(rest !== null && { lte: rest.beforeS }) });
  if (swept === null) return null;
  const { listed, isComplete, oldestS } = swept;
  if (oldestS !== null) logAlert("payments_sweep_cut", { listed });
  if (isComplete) {
    const isOver = oldestS === null;
    await to.store.moveCursor(
      isOver ? { sinceS: startedS, rest: null } : { sinceS, rest: { beforeS: oldestS, startedS } },
    );
  }
  return listed;
}

type SweepResult = {
  readonly listed: number;
  readonly isComplete: boolean;
  readonly oldestS: number | null;
};

async function sweepPages(
  to: EventDispatchServices,
  created: { readonly gte: number; readonly lte?: number },
): Promise<SweepResult | null> {
  const types = Object.keys(EVENT_KINDS);
  let listed = 0;
  let after: string | undefined;
  let isComplete = true;
  let oldestS: number | null = null;
  for (let page = 0; page < PAGES_MAX; page++) {
    const query = { created, limit: 100, starting_after: after, types };
    const events = parseStripeBody(
      await to.stripe.ask(buildGetCall("/v1/events", query)),
      stripeEventsSchema,
    );
    if (events === null) return null;
    for (const listedOne of events.data.toReversed()) {
      const event = z.safeParse(stripeEventSchema, listedOne);
      if (!event.success) logAlert("payment_event_odd", { event_id: listedOne.id });
      else if ((await dispatchEvent(to, event.data)) === "unsure") isComplete = false;
    }
    listed += events.data.length;
    const last = events.data.at(-1);
    after = last?.id;
    oldestS = last?.created ?? oldestS;
    if (!events.has_more || after === undefined) return { listed, isComplete, oldestS: null };
  }
  return { listed, isComplete, oldestS };
}
