import type { Usage } from "../../shared/usage.ts";
import type { ChatRequest, InputKind, InputRequest, Kind } from "./kinds.ts";
import type { JsonObject } from "./json-value.ts";
import type { Chunk } from "./chunk.ts";

export type { JsonObject } from "./json-value.ts";

/**
 * The contract with providers: OpenAI's request in, OpenAI's response (or events) and usage out. A
 * provider returns a ProviderFailure for an upstream fault and never throws.
 */

/** Protocols besides OpenAI's chat that clients and providers can share. */
export type NativeProtocol = "responses" | "messages";

/**
 * A validated request in the provider's protocol. The adapter sets model, stream, output cap and
 * its own headers.
 */
export type NativeBody = {
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
};

export type NativeOutput = {
  readonly text: string;
  readonly finish: string | null;
};

/** The request's owner. Providers see only hashes. */
export type Customer = { readonly orgId: string; readonly user: string | null };

type Attempting = {
  readonly upstreamId: string;
  readonly customer?: Customer;
  /** Minimum time between forwarded batches in ms; 0 or absent for none. */
  readonly paceMs?: number;
  /**
   * Reserves memory in bytes until the response. Returns false if there isn't enough. Negative
   * bytes release memory.
   */
  readonly room?: (bytes: number) => boolean;
  readonly signal: AbortSignal;
  /** Called before each request to the provider, which may bill from then on. */
  readonly onDispatch?: () => void;
  readonly onDropped?: ((fields: readonly string[]) => void) | undefined;
  /**
   * Called before downloads from the client's servers, whose time doesn't count as the provider's.
   */
  readonly onDownload?: () => void;
};

/**
 * One attempt of a chat at one route. Adapters forward only allowed fields of `body`.
 * `sendPromptsSeparately` handles `apart`.
 */
export type ChatCall = Attempting &
  ChatRequest & {
    /** A native request, used instead of `body` if `Provider.speaks` allows it. */
    readonly native?: NativeBody | undefined;
    readonly stream: boolean;
    /** Output tokens per choice that the grant covers. Always sent. */
    readonly cap: number;
  };

type InputCall<K extends InputKind> = Attempting & InputRequest<K> & { readonly stream: boolean };
export type EmbeddingsCall = InputCall<"embeddings">;
export type RerankCall = InputCall<"rerank">;
export type ImageCall = InputCall<"image">;

export type ProviderCall = ChatCall | InputCall<InputKind>;
export type CallOf<K extends Kind> = K extends InputKind ? InputCall<K> : ChatCall;

/** An event of a stream, in the provider's order. */
export type StreamEvent =
  /** A chunk without usage. The run sets ID and model. */
  | { readonly kind: "chunk"; readonly chunk: Chunk }
  /**
   * A chunk that repeats the previous one with another text. `json` is that text as a JSON literal.
   */
  | { readonly kind: "text"; readonly index: number; readonly json: string }
  /**
   * A native event. Events without output wait for the first with output, so that failover stays
   * possible.
   */
  | ({ readonly kind: "native"; readonly event: JsonObject } & NativeOutput)
  /** A piece of image `index` (from 1) in base64. A preview has the index of the next image. */
  | {
      readonly kind: "piece";
      readonly index: number;
      readonly text: string;
      readonly isPartial: boolean;
    }
  /** Sign of silent reasoning, which doesn't count as a stall. */
  | { readonly kind: "thinking" }
  /** Cumulative usage. `partial`: the response continues, and the output is incomplete. */
  | { readonly kind: "usage"; readonly usage: Usage; readonly partial?: boolean }
  /** A failure reported by the provider. Its text isn't kept. */
  | { readonly kind: "error"; readonly failure: ProviderFailure }
  | { readonly kind: "end" };

/**
 * A started stream. `next` returns events, or null at the end, and throws when the connection
 * breaks.
 */
export type EventStream = {
  next(): Promise<readonly StreamEvent[] | null>;
  cancel(): void;
};

export type ProviderFailure = {
  /**
   * retry: another route may succeed. overloaded: likewise (429, 503, 529). disabled: our key or
   * model name is invalid there; cooldown. refused: a 400 about the request, without failover.
   * shed: no memory here, without failover.
   */
  readonly kind: "retry" | "overloaded" | "disabled" | "refused" | "shed";
  readonly retryAfterMs?: number;
  /** Whether a retry may succeed on the same route (408, 5xx, reset before headers). */
  readonly again?: boolean;
  /**
   * `request`, for retry: the request may have caused the failure. It doesn't count against the
   * route, and its output is charged.
   */
  readonly fault?: "request";
  readonly spent?: FailedUsage;
  readonly message?: string;
  readonly param?: string | null;
  readonly code?: string | null;
  /** Whether the body is too large for the host, if refused. */
  readonly tooLarge?: true;
  /** A status or a word like "timeout" for the log; never provider text. */
  readonly reason: string;
};

/** Usage of a failed response: reported, or to be estimated. */
export type FailedUsage = {
  readonly usage: Usage | null;
  /** Estimated output tokens; 0 with `usage`. */
  readonly output: number;
};

export function isFailure(made: object | string | ProviderFailure): made is ProviderFailure {
  return typeof made === "object" && "reason" in made && "kind" in made;
}

export function isRequestCaused({ kind, fault }: ProviderFailure): boolean {
  return kind === "refused" || fault === "request";
}

/** A JSON response in OpenAI's shape and its usage; null if not reported. */
export type ProviderResponse = { readonly body: JsonObject; readonly usage: Usage | null };

export type ProviderResult =
  | {
      readonly kind: "json";
      readonly body: JsonObject;
      readonly usage: Usage | null;
      readonly native?: NativeOutput;
    }
  /** `lateMs`: its first event is still to come, within this time. */
  | { readonly kind: "stream"; readonly events: EventStream; readonly lateMs?: number }
  | { readonly kind: "failure"; readonly failure: ProviderFailure };

export type Provider = {
  readonly id: string;
  readonly kinds?: readonly Kind[];
  /** Reports whether a model accepts a native protocol; absent for none. */
  readonly speaks?: (wire: NativeProtocol, upstreamId: string) => boolean;
  readonly readsFiles?: boolean;
  /** Reports whether a reasoning model reasons by default. Absent: all do. */
  readonly thinksUnasked?: (upstreamId: string) => boolean;
  /** Whether the models may return summaries of their reasoning. Absent: the full reasoning. */
  readonly summarizesThoughts?: boolean;
  /** Whether embeddings accept cl100k_base token IDs. */
  readonly takesTokens?: boolean;
  /** Counts a native prompt with the provider's free counter. Returns null if unavailable. */
  readonly countTokens?: (
    upstreamId: string,
    native: NativeBody,
    signal: AbortSignal,
  ) => Promise<number | null>;
  send(call: ProviderCall): Promise<ProviderResult>;
};
