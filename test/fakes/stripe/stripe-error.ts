import type { CardError } from "./objects.ts";

/** An error response. `kept`: it is stored under the request's key. */
export class StripeError extends Error {
  readonly status: number;
  readonly error: Readonly<Record<string, unknown>>;
  readonly kept: boolean;

  constructor(status: number, error: Readonly<Record<string, unknown>>, kept: boolean) {
    super(String(error["message"]));
    this.status = status;
    this.error = error;
    this.kept = kept;
  }
}

/** Returns the error for an invalid parameter. Nothing ran, so the key stays free. */
export function badParameter(message: string, param?: string, code?: string): StripeError {
  const error = { type: "invalid_request_error", message };
  return new StripeError(
    400,
    {
      ...error,
      ...(param === undefined ? {} : { param }),
      ...(code === undefined ? {} : { code }),
    },
    false,
  );
}

/** Returns the error for an unknown object: 404 in a path, 400 in a parameter. */
export function missing(id: string, param: string, status: 400 | 404 = 400): StripeError {
  const message = `No such ${param}: '${id}'`;
  const error = { type: "invalid_request_error", code: "resource_missing", message, param };
  return new StripeError(status, error, false);
}

/** Returns the error for an object in the wrong state. */
export function wrongState(message: string, code?: string): StripeError {
  const error = { type: "invalid_request_error", message };
  return new StripeError(400, code === undefined ? error : { ...error, code }, true);
}

/** Returns the error for a bank's decline or required approval. */
export function cardError(error: CardError, intent: object): StripeError {
  const status = error.type === "card_error" ? 402 : 400;
  return new StripeError(status, { ...error, payment_intent: intent }, true);
}
