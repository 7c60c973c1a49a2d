import { inUse } from "./idempotency.ts";
import { Refusal } from "./refusal.ts";

/** A fault of one answer. `when`: whether the call was performed. */
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
  /** The requests that it may hit, by `POST /v1/invoices`; by default any. */
  readonly on?: RegExp;
};

export const SLOW_MS = 40_000;

/** Returns Stripe's answer that nothing was done, or that it is unknown. */
export function refusalOf({ kind }: Fault): Refusal | null {
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
const refusal = (status: number, error: Readonly<Record<string, unknown>>): Refusal =>
  new Refusal(status, error, false);

/** Whether the fault comes before the effect; Stripe's rate limit and its door never refuse after it. */
export const comesBefore = ({ kind, when }: Fault): boolean =>
  when === "before" || kind === "429" || kind === "lock_timeout" || kind === "401";

/** The client's line broke before an answer came. */
export class NoAnswer extends Error {
  constructor() {
    super("The connection was closed before an answer came.");
  }
}

/** An answer of which the second half never comes. */
export function broken(answer: Response, text: string): Response {
  const half = new TextEncoder().encode(text.slice(0, text.length >> 1));
  let sent = false;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent) return controller.error(new NoAnswer());
      sent = true;
      controller.enqueue(half);
    },
  });
  return new Response(body, { status: answer.status, headers: answer.headers });
}
