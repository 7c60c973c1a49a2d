import type { RateLimitState } from "../key-status.ts";
import type { Failure } from "../failure.ts";

export type DialectError = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object | string;
};

/**
 * The state of a key's rate limits. `tokens` is set if the key has a token limit and the gateway
 * requested a hold.
 */
export type RateLimitStates = {
  readonly rate: RateLimitState;
  readonly tokens?: RateLimitState | undefined;
};

/** The error format and headers of a path's API. */
export type Dialect = {
  /** Returns an error body, or null for OpenAI's format. */
  error(failure: Failure, requestId: string): DialectError | null;
  headers(requestId: string, limits: RateLimitStates | null): Readonly<Record<string, string>>;
};
