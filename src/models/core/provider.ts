import type { Usage } from "../../shared/usage.ts";
import type { CallKindWithoutOutput, CallKind } from "../../shared/kinds.ts";
import type { ChatRequest, InputRequest } from "./kinds.ts";
import type { JsonObject } from "./json-value.ts";
import type { Chunk } from "./chunk.ts";

export type { JsonObject } from "./json-value.ts";

/** A protocol whose requests the gateway can forward unconverted. */
export type NativeProtocol = "responses" | "messages";

/** A body in a provider's own protocol. */
export type NativeBody = {
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
};

/** The text and finish reason of native output. */
export type NativeOutput = { readonly text: string; readonly finish: string | null };

/** A customer. Providers get only hashes of these IDs. */
export type Customer = { readonly orgId: string; readonly user: string | null };

type AttemptContext = {
  readonly upstreamId: string;
  readonly customer?: Customer;
  readonly paceMs?: number;
  /**
   * Reserves memory until the provider responds, or returns false. Negative bytes release memory.
   */
  readonly room?: (bytes: number) => boolean;
  readonly signal: AbortSignal;
  /** Called before each request to the provider, which can bill us from then on. */
  readonly onDispatch?: () => void;
  readonly onDropped?: ((fields: readonly string[]) => void) | undefined;
  /**
   * Called before downloads from the client's servers. Download time doesn't count as the
   * provider's.
   */
  readonly onDownload?: () => void;
};

/** A chat request to a provider. Adapters forward only the fields of `body` that they allow. */
export type ChatCall = AttemptContext &
  ChatRequest & {
    /** Replaces `body` if the provider supports the protocol of `native`. */
    readonly native?: NativeBody | undefined;
    readonly stream: boolean;
    /** Maximum output tokens per choice. Always sent. */
    readonly cap: number;
  };

type InputCall<K extends CallKindWithoutOutput> = AttemptContext &
  InputRequest<K> & { readonly stream: boolean };
export type EmbeddingsCall = InputCall<"embeddings">;
export type RerankCall = InputCall<"rerank">;
export type ImageCall = InputCall<"image">;

/** A request to one provider. */
export type ProviderCall = ChatCall | InputCall<CallKindWithoutOutput>;
export type ProviderCallOfKind<K extends CallKind> = K extends CallKindWithoutOutput
  ? InputCall<K>
  : ChatCall;

export type StreamEvent =
  /** A chunk. The gateway adds its ID and model later. */
  | { readonly kind: "chunk"; readonly chunk: Chunk }
  /** The previous chunk with its text replaced by `json`, a JSON string. */
  | { readonly kind: "text"; readonly index: number; readonly json: string }
  /**
   * An event in the provider's own protocol. Events before the first output are held back, because
   * another route can still be tried.
   */
  | ({ readonly kind: "native"; readonly event: JsonObject } & NativeOutput)
  /** A base64 piece of image `index` (from 1). A preview has its final image's index. */
  | {
      readonly kind: "piece";
      readonly index: number;
      readonly text: string | Uint8Array;
      readonly isPartial: boolean;
    }
  | { readonly kind: "audio"; readonly bytes: Uint8Array }
  /** A sign of progress: the model reasons without output. */
  | { readonly kind: "thinking" }
  /** `partial` marks usage reported before the output was complete. */
  | { readonly kind: "usage"; readonly usage: Usage; readonly partial?: boolean }
  | { readonly kind: "error"; readonly failure: ProviderFailure }
  | { readonly kind: "end" };

/**
 * A stream of event batches. `next` returns null at the end, and throws when the connection breaks.
 */
export type EventStream = { next(): Promise<readonly StreamEvent[] | null>; cancel(): void };

export type ProviderFailure = {
  /**
   * `retry`: another route can succeed. `overloaded`: like `retry`, for 429, 503 and 529.
   * `disabled`: the provider rejects our key or model name. `refused`: a 400 about the request, so
   * no other route of the model is tried. `shed`: this isolate lacks memory, so no route is tried.
   */
  readonly kind: "retry" | "overloaded" | "disabled" | "refused" | "shed";
  readonly retryAfterMs?: number;
  /** Whether the same route can succeed on a retry (408, 5xx, reset before headers). */
  readonly again?: boolean;
  /**
   * Set if the request may have caused a `retry` failure. The output is then charged, and the
   * failure doesn't count against the route.
   */
  readonly fault?: "request";
  /** Usage that the provider can bill. The client pays only if the request caused the failure. */
  readonly spent?: FailedUsage;
  readonly message?: string;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly tooLarge?: true;
  /** A status or a word such as "timeout", for the log. Never the provider's text. */
  readonly reason: string;
};

/** The usage of a failed call, or an estimate of its output tokens. */
export type FailedUsage = { readonly usage: Usage | null; readonly output: number };

export function isProviderFailure(
  result: object | string | ProviderFailure,
): result is ProviderFailure {
  return typeof result === "object" && "reason" in result && "kind" in result;
}

export function isCausedByRequest({ kind, fault }: ProviderFailure): boolean {
  return kind === "refused" || fault === "request";
}

export type ProviderResponse = { readonly body: JsonObject; readonly usage: Usage | null };

export type ProviderResult =
  | {
      readonly kind: "json";
      readonly body: JsonObject;
      readonly usage: Usage | null;
      readonly native?: NativeOutput;
    }
  /**
   * `lateMs` is the remaining time to wait for the first event. The field is absent once the event
   * has arrived.
   */
  | { readonly kind: "stream"; readonly events: EventStream; readonly lateMs?: number }
  | { readonly kind: "failure"; readonly failure: ProviderFailure };

/**
 * A provider's adapter. Converts from and to OpenAI's format, or forwards a native protocol. Never
 * throws because of a provider's fault.
 */
export type Provider = {
  readonly id: string;
  readonly kinds?: readonly CallKind[];
  readonly supportsProtocol?: (wire: NativeProtocol, upstreamId: string) => boolean;
  readonly acceptsFiles?: boolean;
  /** Whether a model reasons by default. If absent, all reasoning models reason by default. */
  readonly thinksByDefault?: (upstreamId: string) => boolean;
  /**
   * Whether a model reasons despite the effort `none`. If absent, `none` always turns reasoning
   * off.
   */
  readonly ignoresNone?: (upstreamId: string) => boolean;
  readonly summarizesThoughts?: boolean;
  readonly takesTokens?: boolean;
  /** Counts a native prompt with a free call to the provider. Returns null if the call fails. */
  readonly countTokens?: (
    upstreamId: string,
    native: NativeBody,
    signal: AbortSignal,
  ) => Promise<number | null>;
  send(call: ProviderCall): Promise<ProviderResult>;
};
