import type { StripeEvent } from "./objects.ts";
import type { Params } from "./params.ts";
import { CREATED_FIELDS, isCreatedIn, PAGE_FIELDS, pageOf } from "./lists.ts";
import { badParameter } from "./stripe-error.ts";

const TYPES_MAX = 20;
const KEPT_S = 30 * 86_400;

/** An event, and the time from which lists include it. */
export type ListedEvent = { readonly event: StripeEvent; readonly visibleAt: number };

/** `GET /v1/events`: visible events of the last 30 days. */
export function listEvents(happened: readonly ListedEvent[], params: Params, now: number): object {
  params.allowOnly([...PAGE_FIELDS, ...CREATED_FIELDS, "type", "types[]"]);
  const types = params.list("types");
  const type = params.text("type");
  if (types.length > TYPES_MAX) throw badParameter("You may pass up to 20 types.", "types");
  if (types.length > 0 && type !== null) {
    throw badParameter("You may only specify one of these parameters: type, types.", "type");
  }
  const shown = happened.flatMap(({ event, visibleAt }) =>
    visibleAt <= now &&
    event.created >= now - KEPT_S &&
    isCreatedIn(params, event.created) &&
    (types.length === 0 || types.includes(event.type)) &&
    (type === null || event.type === type)
      ? [event]
      : [],
  );
  return pageOf(shown, params, "/v1/events");
}

/** A webhook's endpoint. Newer secrets come first, and Stripe signs with all of them. */
export type Endpoint = { readonly url: string; readonly secrets: readonly string[] };

/** Returns a webhook request, signed at a time in seconds. */
export async function signedWebhook(
  event: StripeEvent,
  { url, secrets }: Endpoint,
  at: number,
): Promise<Request> {
  const body = JSON.stringify(event, null, 2);
  const signatures = await Promise.all(secrets.map((secret) => signature(`${at}.${body}`, secret)));
  const parts = [`t=${at}`, ...signatures.map((one) => `v1=${one}`), `v0=${"0".repeat(64)}`];
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
    "stripe-signature": parts.join(","),
  };
  return new Request(url, { method: "POST", headers, body });
}

/** Returns an HMAC-SHA256 in hex. The whole text of the secret is the key. */
async function signature(text: string, secret: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, [
    "sign",
  ]);
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
