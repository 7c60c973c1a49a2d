import type { RateState } from "../key-terms.ts";
import type { Failure } from "../failure.ts";

/** A refusal as a client reads it; `headers` beside those that every refusal has. */
export type ErrorAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** An object as JSON, a text as it stands. */
  readonly body: object | string;
};

/** What is left of a key's minute; tokens where it has a limit of them and the request came to a hold. */
export type Limits = { readonly rate: RateState; readonly tokens?: RateState | undefined };

/**
 * How the clients of a path are spoken to about everything that is not an answer of a model. Without one a
 * path speaks OpenAI's (failure-response.ts).
 */
export type Dialect = {
  /**
   * Every refusal on the path and below it, also of what never reached its handler (401, 404, 429, 503). Null:
   * as OpenAI says it.
   */
  error(failure: Failure, requestId: string): ErrorAnswer | null;
  /** Headers of its own on every answer; `limits` is null where no key was admitted. */
  headers(requestId: string, limits: Limits | null): Readonly<Record<string, string>>;
};
