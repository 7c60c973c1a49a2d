import type { CallKindWithoutOutput } from "../../../shared/kinds.ts";
import type { StreamReader } from "../../core/frame-reader.ts";
import type { UsageDifferences } from "../../core/openai-usage.ts";
import type { BodyWithDownloadedImages, MultipartForm } from "../../core/outgoing-body.ts";
import type {
  ProviderCallOfKind,
  JsonObject,
  ProviderResponse,
  StreamEvent,
} from "../../core/provider.ts";
import type { ToolCallIdFormat } from "../../core/tool-calls.ts";

/** The fields and rules of an OpenAI-compatible host. */
export type HostProfile = {
  /**
   * The chat fields to forward. Empty if the host doesn't support chat. Without `n`, the host
   * returns only one choice.
   */
  readonly chatFields: ReadonlySet<string>;
  readonly embeddingFields: ReadonlySet<string>;
  readonly nameByField?: Readonly<Record<string, string>>;
  readonly rules?: readonly FieldRule[];
  readonly requiredFields?: readonly RequiredFields[];
  readonly chatExtras?: JsonObject;
  readonly embeddingExtras?: JsonObject;
  readonly capField: "max_completion_tokens" | "max_tokens";
  /** The `stream_options` that request usage. Null if the host always sends usage. */
  readonly streamOptions: Readonly<Record<string, boolean>> | null;
  /** Whether the host accepts the role `developer`. If not, its messages get the role `system`. */
  readonly acceptsDeveloperRole: boolean;
  readonly plainStyle?: PlainStyle;
  /**
   * Fields to send in assistant messages, in addition to OpenAI's. Ignored if `plainStyle` is set.
   */
  readonly returnedFields?: readonly ReturnedField[];
  readonly speaksResponses?: boolean;
  /** Maximum texts per embeddings request. More texts take several requests. */
  readonly textsMax?: number;
  readonly takesTokens?: boolean;
  readonly summarizesThoughts?: boolean;
  /** By default, the key is a bearer token. */
  readonly keyHeader?: "api-key";
  /** The header with the cache key. By default, the key is in the body (`prompt_cache_key`). */
  readonly cacheHeader?: "x-grok-conv-id" | "x-session-affinity";
  readonly usageShape?: UsageDifferences;
  readonly calls?: { readonly [K in CallKindWithoutOutput]?: CallProtocol<K> };
};

/** The rules by which the gateway sends calls of a kind and reads the responses. */
export type CallProtocol<K extends CallKindWithoutOutput> = {
  readonly path: string;
  /** Returns the URL path of a call that doesn't use `path`, otherwise null. */
  otherPath?(call: ProviderCallOfKind<K>): string | null;
  request(call: ProviderCallOfKind<K>): JsonObject | MultipartForm | BodyWithDownloadedImages;
  convertResponse(raw: JsonObject, call: ProviderCallOfKind<K>): ProviderResponse | null;
  pieces?(secret: string | undefined, headers: Headers, call: ProviderCallOfKind<K>): StreamReader;
  events?(whole: ProviderResponse): StreamEvent[];
  reader?(secret: string | undefined): StreamReader;
};

/** A rule that replaces or drops fields. */
export type FieldRule = {
  readonly fields: readonly string[];
  /** Matches the provider's names of the models to which the rule applies. Default: all models. */
  readonly models?: RegExp;
  readonly unless?: readonly [field: string, value: string];
  /**
   * The replacement for each value: another value, an object with other fields to send, or null to
   * drop the field. Without `values`, the field is always dropped.
   */
  readonly values?: Readonly<Record<string, string | JsonObject | null>>;
};

/** Fields that the matching models require if a request has the field `whenField`. */
export type RequiredFields = {
  readonly models: RegExp;
  readonly whenField: string;
  readonly fields: JsonObject;
};

/** A field of a provider's message that the client must send back. */
export type ReturnedField =
  | "reasoning_content"
  | "reasoning"
  | "reasoning_details"
  | "extra_content";

/** The format of messages and tools for hosts that reject unknown fields. */
export type PlainStyle = {
  readonly keepsNames?: boolean;
  readonly keepsCacheMarks?: boolean;
  /** The field for earlier reasoning. If absent, earlier reasoning isn't sent. */
  readonly reasoning?: {
    readonly as: "reasoning_content" | "reasoning" | "thinking";
    readonly models?: RegExp;
    readonly always?: boolean;
    readonly details?: boolean;
  };
  /** The only accepted format of tool call IDs. Other IDs are replaced. */
  readonly toolIds?: ToolCallIdFormat;
  /**
   * The text of an assistant message to insert between a tool result and a user message, for hosts
   * that require alternating turns. Such hosts get no empty assistant messages.
   */
  readonly bridgeText?: string;
};
