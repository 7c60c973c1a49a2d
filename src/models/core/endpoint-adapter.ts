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
 * An adapter between one client format and a core request of a kind (`kinds.ts`) in OpenAI's shape.
 * It parses the body and writes the response. `paid-path.route.ts` handles money, keys and routes
 * for all endpoints.
 *
 * To add an endpoint, add a file or folder here, a row in `endpoints.ts`, and a row in
 * test/fixtures/doors-table.ts, which the tests run for every endpoint.
 */
export type EndpointAdapter = {
  readonly name: string;
  readonly path: `/v1/${string}`;
  /** Returns the error format, also for paths below `path`. Null: OpenAI's. */
  readonly dialect: ((at: EndpointContext) => Dialect | null) | null;
  /**
   * Set if clients without a cap expect the model's maximum output (Codex) instead of
   * DEFAULT_MAX_OUTPUT.
   */
  readonly asksForAll?: true;
  readonly idPrefix: string;
  readonly takesForms?: true;
  /**
   * Parses a JSON object. Pure; never throws for client input. Returns 400 with the endpoint's
   * `param` if invalid.
   */
  parse(body: object, at: EndpointContext, recalled?: RecallResult): Result<ParsedRequest>;
  /**
   * Returns the stored responses that a body names, or null. `parse` receives them. Pure; never
   * throws.
   */
  readonly names?: (body: object) => RecallRequest | null;
};

/** The request data besides the body that an endpoint may read. */
export type EndpointContext = {
  header(name: string): string | undefined;
  query(name: string): string | undefined;
  /** Whether `usage: { include: true }` adds usage to a stream's last chunk. */
  readonly wantsUsage?: boolean;
};

export type ParsedRequest = {
  readonly request: CoreRequest;
  /** The end user in the body. The paid path reads `x-end-user`. */
  readonly user: string | null;
  /** The request's tags, set by the paid path. */
  readonly tags?: Tags;
  readonly dropped: readonly string[];
  /** The region that the client requires, and the field that names it. */
  readonly place?: { readonly name: string; readonly param: string } | null;
  /**
   * Returns the client's name of a core field, or null if it isn't a client field. Absent: the same
   * name.
   */
  readonly paramOf?: (coreParam: string) => string | null;
  /** Returns a field's error code if clients depend on it; null keeps the default. */
  readonly codeOf?: (param: string) => string | null;
  readonly preferences?: RoutePreferences | null;
  readonly fallbacks?: readonly ModelFallback[];
  /** The session in `session_id` or a header. */
  readonly session?: string | null;
  /** Writes the response. It must not keep the prompt in memory, because streams are long. */
  readonly reply: ResponseWriter;
  /** The request in the endpoint's own protocol, for native routes, or null. */
  readonly native: NativeRequest | null;
  /** The data to store, if the organization stores responses. */
  readonly keep?: ConversationAddition;
};

export type ConversationAddition = {
  readonly previous: string | null;
  readonly input: readonly JsonObject[];
};

/** Writes the response as JSON or as server-sent events, as the client requested. */
export type ResponseWriter =
  | {
      readonly kind: "json";
      /**
       * Returns the response body. `answer` is the route's OpenAI-shaped response with our ID,
       * model and usage. Pure except for random IDs, because it is called again if the charge is
       * below the cost. An exception is a bug, and the response is charged.
       */
      json(answer: JsonObject, receipt: Receipt): JsonObject;
      /** Returns the response to store with hidden reasoning, or null if it failed. */
      readonly kept?: (answer: JsonObject, receipt: Receipt) => JsonObject | null;
    }
  | {
      readonly kind: "stream";
      /** Default: server-sent events. Other types can't contain comments. */
      readonly contentType?: string;
      stream(head: ResponseHead): StreamWriter;
    };

export type ResponseHead = {
  /** The endpoint's prefix and the request's 24 characters. */
  readonly id: string;
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Estimated prompt tokens, at least 1. */
  readonly promptTokens: number;
  /** Whether the response will be stored unless it fails. */
  readonly keeps: boolean;
};

export type Receipt = ResponseHead & {
  readonly usage: Usage;
  readonly costMicro: number;
  readonly estimated: boolean;
  /** OpenAI's reason (`stop`, `length`, ...) or the native one; null if incomplete. */
  readonly finishReason: string | null;
  /** Whether the output cap was lowered to fit the available credits. */
  readonly capLoweredByMoney: boolean;
  /** Unix seconds. */
  readonly ended: number;
};

/**
 * Writes one stream. Each method returns complete events to send now, or "". Called per chunk, so
 * it allocates little.
 */
export type StreamWriter = {
  /** The keep-alive to send after KEEP_ALIVE_MS without output. It may change. */
  readonly ping: string;
  /** Returns the first events. `usage`: the usage reported so far, without output. */
  begin(usage: Usage | null): string;
  chunk(chunk: Chunk): string;
  native?(event: JsonObject): string;
  piece?(piece: Extract<StreamEvent, { kind: "piece" }>): string;
  /**
   * Returns the last chunk with another text in choice (or native block) `index`. `json` is the
   * text as a JSON literal, copied unparsed, as for most chunks.
   */
  text(index: number, json: string): string;
  /** Returns the final events, after the charge. No earlier event may show completion. */
  end(receipt: Receipt): string;
  /** Returns the final events of an incomplete response. `receipt` is null without a charge. */
  fail(failure: Failure, receipt: Receipt | null): string;
  kept?(receipt: Receipt): JsonObject | null;
};

/**
 * A request in the endpoint's own protocol. Its response is metered (`StreamEvent` "native") and
 * gets our ID and model.
 */
export type NativeRequest = NativeBody & {
  readonly wire: NativeProtocol;
  readonly dropped: readonly string[];
  readonly reply: ResponseWriter;
  /** Parts of the body that aren't sized by their text: images, documents and known tools. */
  readonly weights: Weights;
  /** Minimum output tokens that the host accepts; 0 for none. */
  readonly outputLeast: number;
  /** Whether parts of the prompt may be cached for an hour, at another price. */
  readonly hourCache: boolean;
  /** A field that can't be converted, which requires a native route, or null. */
  readonly only: { readonly param: string; readonly message: string } | null;
};
