import type { CardError } from "./objects.ts";

/** Stripe's error answer. `kept`: whether it stays under the request's key. */
export class Refusal extends Error {
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

/** A wrong parameter: refused before anything runs, so the key is free afterwards. */
export function badParameter(message: string, param?: string, code?: string): Refusal {
  const error = { type: "invalid_request_error", message };
  return new Refusal(
    400,
    {
      ...error,
      ...(param === undefined ? {} : { param }),
      ...(code === undefined ? {} : { code }),
    },
    false,
  );
}

/** A thing that is not there; in a path it is a 404, in a parameter a 400. */
export function missing(id: string, param: string, status: 400 | 404 = 400): Refusal {
  const message = `No such ${param}: '${id}'`;
  const error = { type: "invalid_request_error", code: "resource_missing", message, param };
  return new Refusal(status, error, false);
}

/** The state of a thing forbids it. */
export function wrongState(message: string, code?: string): Refusal {
  const error = { type: "invalid_request_error", message };
  return new Refusal(400, code === undefined ? error : { ...error, code }, true);
}

/** Returns the bank's rejection or question. */
export function cardRefused(error: CardError, intent: object): Refusal {
  const status = error.type === "card_error" ? 402 : 400;
  return new Refusal(status, { ...error, payment_intent: intent }, true);
}
