import type { RateState } from "../key-terms.ts";
import type { Failure } from "../failure.ts";

/** An error response. `headers` are added to the common ones. */
export type ErrorAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object | string;
};

/** The rest of a key's minute, with tokens if it has a token limit and the request reached a hold. */
export type Limits = { readonly rate: RateState; readonly tokens?: RateState | undefined };

/** The error format of a path. Without one, it is OpenAI's (failure-response.ts). */
export type Dialect = {
  /** Returns the error response of the path and those below it, or null for OpenAI's format. */
  error(failure: Failure, requestId: string): ErrorAnswer | null;
  /** Returns additional headers of every response. `limits` is null without an admitted key. */
  headers(requestId: string, limits: Limits | null): Readonly<Record<string, string>>;
};
