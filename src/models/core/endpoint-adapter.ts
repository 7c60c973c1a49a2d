import type { Dialect } from "../../shared/http/dialect.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import type { Tags } from "../../shared/tags.ts";
import type { Usage } from "../../shared/usage.ts";
import type {
  StoredResponseQuery,
  StoredResponseResult,
} from "../../shared/contracts/stored-responses.ts";
import type { JsonObject, NativeBody, NativeProtocol, StreamEvent } from "./provider.ts";
import type { ModelFallback, RoutePreferences } from "./gateway-fields.ts";
import type { Chunk } from "./chunk.ts";
import type { CoreRequest } from "./kinds.ts";
import type { NativePartCountRules } from "./prompt-size.ts";

/** Converts between a client format and core requests, which have OpenAI's format. */
export type EndpointAdapter = {
  readonly name: string;
  readonly path: `/v1/${string}`;
  /** Returns the error format for `path` and paths below it, or null for OpenAI's. */
  readonly errorFormat: ((at: EndpointContext) => Dialect | null) | null;
  /** Whether a request without an output cap gets the model's maximum (for Codex). */
  readonly defaultsToMaxOutput?: true;
  readonly idPrefix: string;
  readonly takesForms?: true;
  /**
   * Parses a body. Returns 400 with the endpoint's `param` for an invalid object. Must not throw
   * because of client input.
   */
  parse(body: object, at: EndpointContext, recalled?: StoredResponseResult): Result<ParsedRequest>;
  /** Returns the IDs of the stored responses that `parse` needs, or null. Never throws. */
  readonly storedIdsOf?: (body: object) => StoredResponseQuery | null;
};

/** Headers and query parameters of a request. */
export type EndpointContext = {
  header(name: string): string | undefined;
  query(name: string): string | undefined;
  readonly wantsUsage?: boolean;
};

/** A client request after its endpoint adapter parsed it. */
export type ParsedRequest = {
  readonly request: CoreRequest;
  /** The end user in the body, not in the header `x-end-user`. */
  readonly user: string | null;
  readonly tags?: Tags;
  /** The client's trace context, set by the paid path. */
  readonly trace?: string | undefined;
  readonly dropped: readonly string[];
  readonly requiredRegion?: { readonly name: string; readonly param: string } | null;
  /**
   * Returns the client's name for a core field, or null if clients can't send it. Default: the core
   * name.
   */
  readonly paramOf?: (coreParam: string) => string | null;
  /** Returns a field's error code if clients depend on it, or null for the default code. */
  readonly codeOf?: (param: string) => string | null;
  readonly preferences?: RoutePreferences | null;
  readonly fallbacks?: readonly ModelFallback[];
  readonly session?: string | null;
  /** This writer must not reference the prompt, or a long stream would keep it in memory. */
  readonly reply: ResponseWriter;
  readonly native: NativeRequest | null;
  readonly keep?: ConversationAddition;
};

/** A turn to store: its input, and the ID of the previous response. */
export type ConversationAddition = {
  readonly previous: string | null;
  readonly input: readonly JsonObject[];
};

/** Converts responses to the client's format. */
export type ResponseWriter =
  | {
      readonly kind: "json";
      /**
       * Converts a response from OpenAI's to the client's format, and sets our ID, model and usage.
       * Can run twice, so it must be pure except for random IDs. The charge applies even if this
       * method throws.
       */
      json(answer: JsonObject, receipt: Receipt): JsonObject;
      readonly kept?: (answer: JsonObject, receipt: Receipt) => JsonObject | null;
    }
  | {
      readonly kind: "stream";
      /**
       * The stream's content type. Default: server-sent events, the only type that can contain
       * comments.
       */
      readonly contentType?: string;
      stream(head: ResponseHead): StreamWriter;
    };

/** The facts of a response that are known before its output. */
export type ResponseHead = {
  readonly id: string;
  readonly model: string;
  readonly created: number;
  /** The estimated prompt tokens, at least 1. */
  readonly promptTokens: number;
  readonly keeps: boolean;
};

/** The usage and cost of a complete response. */
export type Receipt = ResponseHead & {
  readonly provider: string;
  readonly usage: Usage;
  readonly costMicro: number;
  readonly estimated: boolean;
  /**
   * OpenAI's finish reason (such as `stop`) or the native one. Null if the response is incomplete.
   */
  readonly finishReason: string | null;
  readonly capLoweredByMoney: boolean;
  readonly ended: number;
};

export type ResponseStreamData = string | Uint8Array;

/** Writes one stream. Each method returns complete events, or "". */
export type StreamWriter = {
  /** The event to send after KEEP_ALIVE_MS without output. Can change during the stream. */
  readonly ping: string;
  begin(usage: Usage | null): string;
  chunk(chunk: Chunk): string;
  native?(event: JsonObject): string;
  piece?(piece: Extract<StreamEvent, { kind: "piece" }>): ResponseStreamData;
  audio?(bytes: Uint8Array): ResponseStreamData;
  /**
   * Writes the last chunk again with a new text, for choice (or native block) `index`. `json` is
   * the text as a JSON string.
   */
  text(index: number, json: string): string;
  /**
   * Returns the final events, sent only after the charge. Earlier events must not look like the
   * stream's end.
   */
  end(receipt: Receipt): ResponseStreamData;
  /**
   * Returns the events of a failure, or null to close the connection without an event. A null
   * `receipt` means no charge.
   */
  fail(failure: Failure, receipt: Receipt | null): string | null;
  kept?(receipt: Receipt): JsonObject | null;
};

/** A request in a provider's own protocol. */
export type NativeRequest = NativeBody & {
  readonly wire: NativeProtocol;
  readonly dropped: readonly string[];
  readonly reply: ResponseWriter;
  readonly weights: NativePartCountRules;
  /** Minimum output tokens that the host accepts, or 0. */
  readonly outputLeast: number;
  /** Whether the request can cache the prompt for an hour, which costs more. */
  readonly hourCache: boolean;
  /** A field that chat requests don't have. It requires a route with the protocol `wire`. */
  readonly only: { readonly param: string; readonly message: string } | null;
};
