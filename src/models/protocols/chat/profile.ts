import type { UsageShape } from "../../core/chat-usage.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { IdShape } from "../../core/tool-call-id.ts";

/** How one family of OpenAI-compatible hosts differs from the others, as data. */
export type Profile = {
  /** Request fields forwarded as they are; everything else is dropped. Empty: no such requests. */
  readonly chatFields: ReadonlySet<string>;
  readonly embeddingFields: ReadonlySet<string>;
  /** Names that a field has there. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** What becomes of some fields; the first rule that names a field decides. */
  readonly rules?: readonly Rule[];
  /** What is sent where the client says nothing of it. */
  readonly implied?: readonly Implied[];
  /** Sent with every request of the kind. */
  readonly chatExtras?: JsonObject;
  readonly embeddingExtras?: JsonObject;
  /** The field that caps the output of one choice. */
  readonly capField: "max_completion_tokens" | "max_tokens";
  /** Sent with every stream, to be told usage; null where it comes unasked and the field is refused. */
  readonly streamOptions: Readonly<Record<string, boolean>> | null;
  /** Whether `developer` messages are known; otherwise they are sent as `system`. */
  readonly developerRole: boolean;
  /** Set where only what every model knows may be sent; otherwise messages and tools go as OpenAI has them. */
  readonly plain?: PlainStyle;
  /** The fields of its earlier turns that go back to it next to OpenAI's; with `plain`, `PlainStyle` says so. */
  readonly returned?: readonly ReturnedField[];
  /** It has POST /responses too. */
  readonly speaksResponses?: boolean;
  /** The only number of choices is 1. */
  readonly oneChoice?: boolean;
  /** Embeddings are of texts alone, at most so many in one request. */
  readonly textsMax?: number;
  /** Embeddings are of the token ids of cl100k_base too: its models' own. */
  readonly takesTokens?: boolean;
  /** The thoughts that it shows may be summaries. */
  readonly summarizesThoughts?: boolean;
  /** The header that carries the key; absent: a bearer token. */
  readonly keyHeader?: "api-key";
  readonly usage?: UsageShape;
  readonly chatPath: string;
  readonly embeddingsPath: string;
};

/** What becomes of the named fields. */
export type Rule = {
  readonly fields: readonly string[];
  /** The upstream names of the models it holds for; absent: all. */
  readonly models?: RegExp;
  /** It does not hold beside this field with this value. */
  readonly unless?: readonly [field: string, value: string];
  /**
   * What is sent instead of some values: another value, other fields, or nothing (null); what is not
   * named stays. Absent: the field is left out.
   */
  readonly values?: Readonly<Record<string, string | JsonObject | null>>;
};

/** Fields that the named models must have beside another one. */
export type Implied = {
  readonly models: RegExp;
  readonly beside: string;
  readonly fields: JsonObject;
};

/** A field that hosts add to an assistant's message, or to a call in it. */
export type ReturnedField =
  | "reasoning_content"
  | "reasoning"
  | "reasoning_details"
  | "extra_content";

/** Messages and tools for hosts that refuse what they do not know. */
export type PlainStyle = {
  /** Whether messages may carry `name`. */
  readonly names?: boolean;
  /** Whether parts and tools may carry `cache_control`. */
  readonly marks?: boolean;
  /** How earlier reasoning is sent back; absent: it is not. */
  readonly reasoning?: {
    readonly as: "reasoning_content" | "reasoning" | "thinking";
    readonly models?: RegExp;
    /** Also where there was none. */
    readonly always?: boolean;
    /** Whether `reasoning_details` go back instead, where there are any. */
    readonly details?: boolean;
  };
  /** The only tool call ids that it takes; others are mapped, results alike. */
  readonly toolIds?: IdShape;
  /**
   * Set where turns are checked: said by the assistant between a tool's result and a user's message.
   * Its turns without text and calls are left out.
   */
  readonly bridge?: string;
};
