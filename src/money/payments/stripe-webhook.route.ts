import { fail } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { readBodyBytes } from "../../shared/http/read-json.ts";
import { readAnonymousBody } from "../../shared/http/request-slots.ts";
import { now } from "../../shared/clock.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { withTimeout } from "../../shared/timers.ts";
import { createEventDispatchStore } from "./payments.store.ts";
import { dispatchEvent } from "./stripe-events.ts";
import type { EventDispatchResult } from "./stripe-events.ts";
import { stripeEventSchema } from "./stripe-objects.ts";
import type { StripeEvent } from "./stripe-objects.ts";
import { isSignedByStripe, parseJson, parseSignatureHeader, createStripeClient } from "./stripe.ts";

const EVENT_BYTES_MAX = 512 * 1024;
/** Limits of a webhook's body. They are small, because anyone can send a signature header. */
const EVENT_LIMITS = { bytesMax: EVENT_BYTES_MAX, timeoutMs: 5000 };
const RESPONSE_WAIT_MS = 8000;

/**
 * Handles POST /payments/stripe. Reads the body only with a recent, well-formed signature header.
 * Returns 2xx once the event is stored, or if it concerns no organization of this region.
 */
export async function stripeWebhookRoute(c: AppContext): Promise<Response> {
  const { config } = c.var;
  const { payments } = config;
  if (payments === null) return fail(c, { kind: "payments_off" });
  const header = c.req.header("stripe-signature") ?? null;
  const nowMs = now(c.env);
  if (parseSignatureHeader(header, nowMs) === null) return refuseUnsigned(c);
  const bytes = await readAnonymousBody(c, readBodyBytes, EVENT_LIMITS, "stripe");
  if (!bytes.ok) return fail(c, bytes.failure);
  const by = { secrets: payments.webhookSecrets, nowMs };
  if (!(await isSignedByStripe(bytes.value, header, by))) return refuseUnsigned(c);
  const event = parseEvent(bytes.value);
  if (event === null) return c.json({ received: true });
  const to = {
    store: createEventDispatchStore(c.env.DB),
    payments: objectsOf(c.env).payments,
    stripe: createStripeClient(payments),
    isLive: payments.isLive,
  };
  const dispatched = await withTimeout(dispatchEvent(to, event), RESPONSE_WAIT_MS).catch(
    (error: unknown): EventDispatchResult => {
      logWarning("payment_event_not_taken", { event_id: event.id, reason: errorMessageOf(error) });
      return "unsure";
    },
  );
  if (dispatched === "unsure") return fail(c, { kind: "storage_unavailable" });
  return c.json({ received: true });
}

function refuseUnsigned(c: AppContext): Response {
  return fail(c, { kind: "invalid_request", message: "Bad request.", param: null });
}

function parseEvent(bytes: Uint8Array): StripeEvent | null {
  const parsed = stripeEventSchema.safeParse(parseJson(new TextDecoder().decode(bytes)));
  return parsed.success ? parsed.data : null;
}
