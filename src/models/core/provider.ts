import type { Usage } from "../../shared/usage.ts";
import type { ChatRequest, InputKind, InputRequest, Kind } from "./kinds.ts";
import type { JsonObject } from "./json-value.ts";
import type { Chunk } from "./chunk.ts";

export type { JsonObject } from "./json-value.ts";

/**
 * The contract with whoever answers: OpenAI's request in, OpenAI's response (or SSE events) and usage
 * out. A provider never throws for an upstream's fault: it answers with a ProviderFailure.
 */

/** Wires beside OpenAI's chat that a client and a provider may both speak. */
export type NativeProtocol = "responses" | "messages";

/**
 * A request in the provider's own wire, checked: what may not pass is gone. The adapter sets model,
 * stream and output cap, and its own headers over these.
 */
export type NativeBody = {
  readonly body: JsonObject;
  /** What of the client's headers passes (betas, versions); names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
};

/** What the meter takes from an answer, or an event, in its own wire. */
export type NativeOutput = {
  /** Everything that counts as output: text, reasoning, names and arguments of calls. */
  readonly said: string;
  /** The wire's own reason to end, where it tells it here; else null. */
  readonly finish: string | null;
};

/** Whose request it is. Upstream they are told apart by hashes alone. */
export type Customer = { readonly orgId: string; readonly user: string | null };

/** What an attempt is given beside its request. */
type Attempting = {
  /** The provider's own name for the model. */
  readonly upstreamId: string;
  readonly customer?: Customer;
  /** How often, at most, what a stream brings is handed on, ms; 0 or absent: each chunk as it comes. */
  readonly paceMs?: number;
  /**
   * Takes so many bytes of the isolate's room until the route has answered, as a body does; false where there
   * are none. Negative ones are given back.
   */
  readonly room?: (bytes: number) => boolean;
  /** Ends the attempt: our timers or the run's end. */
  readonly signal: AbortSignal;
  /** Told just before each request to the upstream goes out: from then on it works, and may bill. */
  readonly onDispatch?: () => void;
  /** Told which fields of `body` the request to the upstream leaves out though they ask for something. */
  readonly onDropped?: ((fields: readonly string[]) => void) | undefined;
  /** Told before the client's own servers are asked for images: until dispatch the time is not the upstream's. */
  readonly onDownload?: () => void;
};

/**
 * One attempt of a chat at one route. `body` is the client's request, checked; an adapter forwards its allow-list of
 * fields and drops the rest. It does not heed `apart` (`sendApart`).
 */
export type ChatCall = Attempting &
  ChatRequest & {
    /** Instead of `body`, and answered in that wire; only where `Provider.speaks` says so. */
    readonly native?: NativeBody | undefined;
    readonly stream: boolean;
    /** The output cap that the grant pays for, in tokens per choice. Always sent. */
    readonly cap: number;
  };

/** One attempt of a call without output at one route. */
type InputCall<K extends InputKind> = Attempting & InputRequest<K> & { readonly stream: false };
export type EmbeddingsCall = InputCall<"embeddings">;

/** One attempt at one route, of any kind that is sold. */
export type ProviderCall = ChatCall | InputCall<InputKind>;
/** The same of one kind. */
export type CallOf<K extends Kind> = K extends InputKind ? InputCall<K> : ChatCall;

/** What the network chunks of one handing on held, as OpenAI chunks in the upstream's order. */
export type StreamEvent =
  /** An OpenAI chunk without usage. The run sets id and model. */
  | { readonly kind: "chunk"; readonly chunk: Chunk }
  /**
   * A chunk that differs from the chunk before it in one choice's text alone: `json` is that text as
   * the upstream wrote it, a JSON string literal. Adapters may give it instead of `chunk`.
   */
  | { readonly kind: "text"; readonly index: number; readonly json: string }
  /**
   * An event of a native answer, as the upstream gave it, in its order. What promises nothing yet
   * (`response.created`, `message_start`) comes with the first that does, so that failover is still possible.
   */
  | ({ readonly kind: "native"; readonly event: JsonObject } & NativeOutput)
  /**
   * After what was given so far the model thinks and shows nothing of it: until another event comes, silence is
   * no standstill.
   */
  | { readonly kind: "thinking" }
  /**
   * Cumulative usage; the last one counts. `partial` while the answer still goes on: then its output is
   * only what there was so far, or nothing yet.
   */
  | { readonly kind: "usage"; readonly usage: Usage; readonly partial?: boolean }
  /** The upstream said that it failed; its text is not kept. */
  | { readonly kind: "error"; readonly failure: ProviderFailure }
  /** The terminal marker ([DONE] or what the provider has for it). */
  | { readonly kind: "end" };

/** A started stream. `next` gives the events of the next network chunks, null at end of file, and throws when the connection breaks. */
export type EventStream = {
  next(): Promise<readonly StreamEvent[] | null>;
  /** Ends the upstream connection; never throws. */
  cancel(): void;
};

export type ProviderFailure = {
  /**
   * retry: the next route may do better. overloaded: the same, and says so (429, 503, 529).
   * disabled: our own key or model mapping is bad there; leave the route out for a while.
   * refused: a 400-class answer about the request itself: returned to the client, no failover.
   * shed: this isolate has no room for it: says nothing of the route, no failover.
   */
  readonly kind: "retry" | "overloaded" | "disabled" | "refused" | "shed";
  readonly retryAfterMs?: number;
  /** Only for retry: the same route may well answer a second attempt (408, 5xx, a reset before headers). */
  readonly again?: boolean;
  /**
   * Whose fault it is: the host's own unless said, and the request's wherever it is refused. `request`, for
   * retry: it met a limit of this route or may have provoked the failure, so that the route's health does
   * not suffer. Once such an answer has said something, it is paid for.
   */
  readonly fault?: "request";
  /** What the answer had used when it failed; only where the fault is the request's. */
  readonly spent?: FailedUsage;
  /** Only for refused: cleaned text, param and code that may be shown. */
  readonly message?: string;
  readonly param?: string | null;
  readonly code?: string | null;
  /** Only for refused: the host found it too large as a body, not too long for the model. */
  readonly tooLarge?: true;
  /** For the log: a status or a word like "timeout"; never upstream text. */
  readonly reason: string;
};

/** What a failed answer had used: as reported, else to be estimated from what it had said. */
export type FailedUsage = {
  readonly usage: Usage | null;
  /** Tokens of what it had said, estimated; 0 beside `usage`. */
  readonly output: number;
};

/** Whether it is why a request could not be made, instead of the request, its body or its answer. */
export function isFailure(made: object | string | ProviderFailure): made is ProviderFailure {
  return typeof made === "object" && "reason" in made && "kind" in made;
}

/** Whether what was asked may have provoked the failure: then it is not the host's to pay for. */
export function isRequestCaused({ kind, fault }: ProviderFailure): boolean {
  return kind === "refused" || fault === "request";
}

/** A JSON answer in OpenAI's shape, and the usage to bill; null where the upstream gave none. */
export type ProviderResponse = { readonly body: JsonObject; readonly usage: Usage | null };

export type ProviderResult =
  | {
      readonly kind: "json";
      readonly body: JsonObject;
      readonly usage: Usage | null;
      /** Of a native answer. */
      readonly native?: NativeOutput;
    }
  /** `isLate`: its first event is still to come. */
  | { readonly kind: "stream"; readonly events: EventStream; readonly isLate?: true }
  | { readonly kind: "failure"; readonly failure: ProviderFailure };

export type Provider = {
  readonly id: string;
  /** What it can be asked; absent: chats alone. Nothing is sold at it that it cannot be asked. */
  readonly kinds?: readonly Kind[];
  /** Whether it answers this model in that wire; absent: in none. */
  readonly speaks?: (wire: NativeProtocol, upstreamId: string) => boolean;
  /** Whether it takes PDFs inside a request, with models that see images. */
  readonly readsFiles?: boolean;
  /** Whether a model that can think does so unasked; absent: each does. */
  readonly thinksUnasked?: (upstreamId: string) => boolean;
  /** Whether the thoughts that its models show may be summaries; absent: they are whole. */
  readonly summarizesThoughts?: boolean;
  /** Whether its embeddings take the token ids of cl100k_base; otherwise they are of texts alone. */
  readonly takesTokens?: boolean;
  /** Tokens of a native request's prompt by the upstream's own counter, free; null where it does not say. */
  readonly countTokens?: (
    upstreamId: string,
    native: NativeBody,
    signal: AbortSignal,
  ) => Promise<number | null>;
  send(call: ProviderCall): Promise<ProviderResult>;
};
