import type { InputKind } from "../../../shared/kinds.ts";
import type { StreamReader } from "../../core/http-provider.ts";
import type { UsageShape } from "../../core/chat-usage.ts";
import type { OutgoingForm } from "../../core/outgoing-body.ts";
import type { CallOf, JsonObject, ProviderResponse, StreamEvent } from "../../core/provider.ts";
import type { IdShape } from "../../core/tool-call-id.ts";

/** The differences between families of OpenAI-compatible hosts, as data. */
export type Profile = {
  /**
   * Request fields that are forwarded unchanged. Other fields are dropped. Empty: the host has no such
   * requests.
   */
  readonly chatFields: ReadonlySet<string>;
  readonly embeddingFields: ReadonlySet<string>;
  readonly renamed?: Readonly<Record<string, string>>;
  /** Rules for single fields. The first rule that names a field decides. */
  readonly rules?: readonly Rule[];
  /** Fields that are sent if the client omits them. */
  readonly implied?: readonly Implied[];
  readonly chatExtras?: JsonObject;
  readonly embeddingExtras?: JsonObject;
  /** The field that caps the output of one choice. */
  readonly capField: "max_completion_tokens" | "max_tokens";
  /**
   * Fields that are sent with every stream to request usage. Null if usage comes anyway and the field is
   * rejected.
   */
  readonly streamOptions: Readonly<Record<string, boolean>> | null;
  /** Whether `developer` messages are known. Otherwise they are sent as `system`. */
  readonly developerRole: boolean;
  /** Set if only what every model knows may be sent. Otherwise messages and tools keep OpenAI's form. */
  readonly plain?: PlainStyle;
  /** The fields of its earlier turns that go back to it next to OpenAI's; with `plain`, `PlainStyle` says so. */
  readonly returned?: readonly ReturnedField[];
  readonly speaksResponses?: boolean;
  /** Whether 1 is the only allowed number of choices. */
  readonly oneChoice?: boolean;
  /** Set if embeddings accept only texts: the most in one request. */
  readonly textsMax?: number;
  /** Whether embeddings accept token ids of cl100k_base. */
  readonly takesTokens?: boolean;
  readonly summarizesThoughts?: boolean;
  /** The header with the key. Absent: a bearer token. */
  readonly keyHeader?: "api-key";
  readonly usage?: UsageShape;
  readonly chatPath: string;
  readonly embeddingsPath: string;
  /** The kinds besides chat and embeddings that it serves. */
  readonly calls?: { readonly [K in InputKind]?: PlainCall<K> };
};

/** How a host serves a kind of call: one request and one JSON response. */
export type PlainCall<K extends InputKind> = {
  readonly path: string;
  request(call: CallOf<K>): JsonObject | OutgoingForm;
  /** Returns null for an invalid response. */
  answer(raw: JsonObject, call: CallOf<K>): ProviderResponse | null;
  /** Reads a response in pieces instead of as a whole. */
  pieces?(secret: string | undefined): StreamReader;
  /** Returns the events of a whole response, for a kind with streams. */
  events?(whole: ProviderResponse): StreamEvent[];
  reader?(secret: string | undefined): StreamReader;
};

/** The treatment of the named fields. */
export type Rule = {
  readonly fields: readonly string[];
  /** The upstream names of the models that it applies to. Absent: all. */
  readonly models?: RegExp;
  /** The rule does not apply beside this field with this value. */
  readonly unless?: readonly [field: string, value: string];
  /**
   * Replacements of values: another value, other fields, or nothing (null). Other values stay. Absent: the
   * field is left out.
   */
  readonly values?: Readonly<Record<string, string | JsonObject | null>>;
};

/** Fields that the named models require beside another one. */
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

/** The form of messages and tools for hosts that reject unknown fields. */
export type PlainStyle = {
  readonly names?: boolean;
  readonly marks?: boolean;
  /** How earlier reasoning is sent back. Absent: it isn't. */
  readonly reasoning?: {
    readonly as: "reasoning_content" | "reasoning" | "thinking";
    readonly models?: RegExp;
    readonly always?: boolean;
    /** Whether `reasoning_details` go back instead, where there are any. */
    readonly details?: boolean;
  };
  /** The only accepted form of tool call ids. Others are mapped, in results too. */
  readonly toolIds?: IdShape;
  /**
   * Set if the host checks turns: the assistant's text between a tool result and a user message. Turns
   * without text and calls are left out.
   */
  readonly bridge?: string;
};
