import { inUse } from "./idempotency.ts";
import { StripeError } from "./stripe-error.ts";

/** A fault of one response. `when`: before or after the call ran. */
export type Fault = {
  readonly kind:
    | "no_answer"
    | "reset"
    | "500_stored"
    | "500"
    | "409"
    | "429"
    | "lock_timeout"
    | "401"
    | "slow";
  readonly when: "before" | "after";
  /** Matching requests, such as `POST /v1/invoices`. By default, all match. */
  readonly on?: RegExp;
};

export const SLOW_MS = 40_000;

/** Returns Stripe's error for the fault, or null. */
export function errorOf({ kind }: Fault): StripeError | null {
  switch (kind) {
    case "500":
    case "500_stored":
      return refusal(500, { type: "api_error", message: "An unknown error occurred." });
    case "409":
      return inUse();
    case "429":
      return refusal(429, {
        ...INVALID,
        code: "rate_limit",
        message: "Request rate limit exceeded.",
      });
    case "lock_timeout": {
      const message =
        "This object cannot be accessed right now because another API request is accessing it.";
      return refusal(429, { ...INVALID, code: "lock_timeout", message });
    }
    case "401":
      return refusal(401, { ...INVALID, message: "Invalid API Key provided." });
    case "no_answer":
    case "reset":
    case "slow":
      return null;
  }
}

const INVALID = { type: "invalid_request_error" };
const refusal = (status: number, error: Readonly<Record<string, unknown>>): StripeError =>
  new StripeError(status, error, false);

/**
 * Reports whether the call doesn't run. Rate limits and wrong keys never reject a call that ran.
 */
export const preventsCall = ({ kind, when }: Fault): boolean =>
  when === "before" || kind === "429" || kind === "lock_timeout" || kind === "401";

/** Thrown if the connection fails before a response. */
export class NoResponse extends Error {
  constructor() {
    super("The connection was closed before an answer came.");
  }
}

/** Returns a response whose second half never arrives. */
export function truncatedResponse(answer: Response, text: string): Response {
  const half = new TextEncoder().encode(text.slice(0, text.length >> 1));
  let sent = false;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent) return controller.error(new NoResponse());
      sent = true;
      controller.enqueue(half);
    },
  });
  return new Response(body, { status: answer.status, headers: answer.headers });
}
