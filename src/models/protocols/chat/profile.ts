import type { InputKind } from "../../../shared/kinds.ts";
import type { StreamReader } from "../../core/http-provider.ts";
import type { UsageShape } from "../../core/chat-usage.ts";
import type { OutgoingForm } from "../../core/outgoing-body.ts";
import type { CallOf, JsonObject, ProviderResponse, StreamEvent } from "../../core/provider.ts";
import type { IdShape } from "../../core/tool-call-id.ts";

/** Differences between OpenAI-compatible hosts, as data. */
export type Profile = {
  /**
   * Fields forwarded unchanged. Others are dropped. Without any, the kind of request isn't
   * supported.
   */
  readonly chatFields: ReadonlySet<string>;
  readonly embeddingFields: ReadonlySet<string>;
  readonly renamed?: Readonly<Record<string, string>>;
  /** For each field, the first rule that names it applies. */
  readonly rules?: readonly Rule[];
  /** Fields sent if the client omits them. */
  readonly implied?: readonly Implied[];
  readonly chatExtras?: JsonObject;
  readonly embeddingExtras?: JsonObject;
  readonly capField: "max_completion_tokens" | "max_tokens";
  /** Fields that request usage in streams. Null if usage comes anyway and the field is rejected. */
  readonly streamOptions: Readonly<Record<string, boolean>> | null;
  /** Whether `developer` messages are supported. Otherwise they are sent as `system`. */
  readonly developerRole: boolean;
  readonly plain?: PlainStyle;
  /**
   * Fields of earlier turns sent back in addition to OpenAI's. With `plain`, `PlainStyle` decides.
   */
  readonly returned?: readonly ReturnedField[];
  readonly speaksResponses?: boolean;
  readonly oneChoice?: boolean;
  /** Maximum texts in one embeddings request. Set only if embeddings accept only texts. */
  readonly textsMax?: number;
  readonly takesTokens?: boolean;
  readonly summarizesThoughts?: boolean;
  /** The header with the key. Default: a bearer token. */
  readonly keyHeader?: "api-key";
  /** The header with the cache key. Default: the body's `prompt_cache_key`. */
  readonly cacheHeader?: "x-grok-conv-id" | "x-session-affinity";
  readonly usage?: UsageShape;
  readonly chatPath: string;
  readonly embeddingsPath: string;
  readonly calls?: { readonly [K in InputKind]?: PlainCall<K> };
};

export type PlainCall<K extends InputKind> = {
  readonly path: string;
  request(call: CallOf<K>): JsonObject | OutgoingForm;
  answer(raw: JsonObject, call: CallOf<K>): ProviderResponse | null;
  pieces?(secret: string | undefined, headers: Headers): StreamReader;
  /** Returns the events of a complete response, for a kind with streams. */
  events?(whole: ProviderResponse): StreamEvent[];
  reader?(secret: string | undefined): StreamReader;
};

export type Rule = {
  readonly fields: readonly string[];
  /** Upstream names of the models that the rule applies to. Absent: all. */
  readonly models?: RegExp;
  /** The rule doesn't apply if this field has this value. */
  readonly unless?: readonly [field: string, value: string];
  /**
   * Replacements by the field's value: another value, other fields, or nothing (null). Absent: the
   * field is dropped.
   */
  readonly values?: Readonly<Record<string, string | JsonObject | null>>;
};

/** Fields that these models require together with the field `beside`. */
export type Implied = {
  readonly models: RegExp;
  readonly beside: string;
  readonly fields: JsonObject;
};

/** A field that hosts add to an assistant's message or tool call. */
export type ReturnedField =
  | "reasoning_content"
  | "reasoning"
  | "reasoning_details"
  | "extra_content";

/** The form of messages and tools for hosts that reject unknown fields. */
export type PlainStyle = {
  readonly names?: boolean;
  readonly marks?: boolean;
  /** The form in which earlier reasoning is sent back. Absent: it isn't sent. */
  readonly reasoning?: {
    readonly as: "reasoning_content" | "reasoning" | "thinking";
    readonly models?: RegExp;
    readonly always?: boolean;
    /** Whether existing `reasoning_details` are sent back instead. */
    readonly details?: boolean;
  };
  /** The only accepted form of tool call IDs. Others are mapped, also in results. */
  readonly toolIds?: IdShape;
  /**
   * The assistant's text between a tool result and a user message, for hosts that validate turns.
   * Empty turns are dropped.
   */
  readonly bridge?: string;
};
