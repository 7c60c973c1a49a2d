import type { Dialect } from "../../shared/http/dialect.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import type { Tags } from "../../shared/tags.ts";
import type { Usage } from "../../shared/usage.ts";
import type { RecallRequest, RecallResult } from "../../shared/contracts/stored-responses.ts";
import type { JsonObject, NativeBody, NativeProtocol, StreamEvent } from "./provider.ts";
import type { ModelFallback, RoutePreferences } from "./routing-preferences.ts";
import type { Chunk } from "./chunk.ts";
import type { CoreRequest } from "./kinds.ts";
import type { Weights } from "./prompt-size.ts";

/**
 * Converts between a client format and a core request, which has OpenAI's shape.
 * `paid-path.route.ts` handles money, keys and routes.
 *
 * To add an endpoint, add a file in `models/endpoints`, a row in its `endpoints.ts`, and a row in
 * test/fixtures/doors-table.ts, which the tests run for every endpoint.
 */
export type EndpointAdapter = {
  readonly name: string;
  readonly path: `/v1/${string}`;
  /** Returns the format of errors at `path` and at all paths below it. Null means OpenAI's format. */
  readonly dialect: ((at: EndpointContext) => Dialect | null) | null;
  /** Set if clients that send no output cap expect the model's maximum (Codex). */
  readonly asksForAll?: true;
  readonly idPrefix: string;
  readonly takesForms?: true;
  /**
   * Parses a JSON object. Returns 400 with the endpoint's `param` if it is invalid. Never throws
   * for client input.
   */
  parse(body: object, at: EndpointContext, recalled?: RecallResult): Result<ParsedRequest>;
  /** Returns the stored responses that `parse` needs, or null. Never throws. */
  readonly names?: (body: object) => RecallRequest | null;
};

/** Request data besides the body that an endpoint may read. */
export type EndpointContext = {
  header(name: string): string | undefined;
  query(name: string): string | undefined;
  /** Whether a stream's last chunk has usage, also without `stream_options`. */
  readonly wantsUsage?: boolean;
};

export type ParsedRequest = {
  readonly request: CoreRequest;
  /** The end user in the body. The header `x-end-user` is read elsewhere. */
  readonly user: string | null;
  readonly tags?: Tags;
  /** The client's trace (`traceOf`), set by the paid path. */
  readonly trace?: string | undefined;
  readonly dropped: readonly string[];
  readonly place?: { readonly name: string; readonly param: string } | null;
  /**
   * Returns the client's name of a chat field, or null if clients can't send it. Absent: the same
   * name.
   */
  readonly paramOf?: (coreParam: string) => string | null;
  /** Returns a field's error code if clients depend on it; null means the default. */
  readonly codeOf?: (param: string) => string | null;
  readonly preferences?: RoutePreferences | null;
  readonly fallbacks?: readonly ModelFallback[];
  readonly session?: string | null;
  /** The writer must not keep the prompt in memory, because streams are long. */
  readonly reply: ResponseWriter;
  readonly native: NativeRequest | null;
  readonly keep?: ConversationAddition;
};

export type ConversationAddition = {
  readonly previous: string | null;
  readonly input: readonly JsonObject[];
};

export type ResponseWriter =
  | {
      readonly kind: "json";
      /**
       * Returns the response body. `answer` has OpenAI's shape with our ID, model and usage. Must
       * be pure except for random IDs, because it runs again if the charge is below the cost. An
       * exception is a bug, and the response is charged.
       */
      json(answer: JsonObject, receipt: Receipt): JsonObject;
      /** Returns the response to store, or null if it failed. */
      readonly kept?: (answer: JsonObject, receipt: Receipt) => JsonObject | null;
    }
  | {
      readonly kind: "stream";
      /** Default: server-sent events. Other types can't contain comments. */
      readonly contentType?: string;
      stream(head: ResponseHead): StreamWriter;
    };

export type ResponseHead = {
  readonly id: string;
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** An estimate of at least 1. */
  readonly promptTokens: number;
  readonly keeps: boolean;
};

export type Receipt = ResponseHead & {
  readonly provider: string;
  readonly usage: Usage;
  readonly costMicro: number;
  readonly estimated: boolean;
  /** OpenAI's reason (`stop`, `length`, ...) or the native one; null if incomplete. */
  readonly finishReason: string | null;
  readonly capLoweredByMoney: boolean;
  /** Unix seconds. */
  readonly ended: number;
};

export type Written = string | Uint8Array;

/** Writes one stream. Each method returns complete events to send now, or "". */
export type StreamWriter = {
  /** The keep-alive to send after KEEP_ALIVE_MS without output. It may change. */
  readonly ping: string;
  /** `usage` is the usage so far, without output. */
  begin(usage: Usage | null): string;
  chunk(chunk: Chunk): string;
  native?(event: JsonObject): string;
  piece?(piece: Extract<StreamEvent, { kind: "piece" }>): string;
  audio?(bytes: Uint8Array): Written;
  /**
   * Writes the last chunk again with another text, in choice (or native block) `index`. `json` is a
   * JSON literal, copied unparsed.
   */
  text(index: number, json: string): string;
  /** Called after the charge. No earlier event may show completion. */
  end(receipt: Receipt): Written;
  /** `receipt` is null without a charge. Null breaks off the connection. */
  fail(failure: Failure, receipt: Receipt | null): string | null;
  kept?(receipt: Receipt): JsonObject | null;
};

/** A request in the endpoint's own protocol. Its response gets our ID and model. */
export type NativeRequest = NativeBody & {
  readonly wire: NativeProtocol;
  readonly dropped: readonly string[];
  readonly reply: ResponseWriter;
  /** Images, documents and known tools, which aren't sized by their text. */
  readonly weights: Weights;
  /** Minimum output tokens that the host accepts; 0 for none. */
  readonly outputLeast: number;
  /** Whether the prompt may be cached for an hour, at another price. */
  readonly hourCache: boolean;
  /** A field that can't be converted to a chat request and requires a native route. */
  readonly only: { readonly param: string; readonly message: string } | null;
};
