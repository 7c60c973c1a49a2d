import type { CountedUnit, Unit } from "./usage.ts";

type KindRow = {
  readonly does: string;
  /** Its main path. A kind can have other endpoints. */
  readonly path: `/v1/${string}`;
  /** Whether output tokens are billed: requests have a cap and prices an `output`. */
  readonly hasOutput: boolean;
  /** Whether usage counts input tokens, so that they can be priced. */
  readonly hasInput: boolean;
  /** Units besides tokens that its usage counts, so that they can be priced. */
  readonly units: readonly Unit[];
  /** Request fields that every model of the kind supports. */
  readonly parameters: readonly string[];
};

/**
 * The kinds of calls. `models/core/kinds.ts` says how each is called. MODELS, model lists and OpenAPI use
 * these names.
 */
export const KINDS = {
  chat: {
    does: "chats",
    path: "/v1/chat/completions",
    hasOutput: true,
    hasInput: true,
    units: ["request"],
    parameters: ["max_tokens", "max_completion_tokens", "stream", "user"],
  },
  embeddings: {
    does: "makes embeddings",
    path: "/v1/embeddings",
    hasOutput: false,
    hasInput: true,
    units: ["request"],
    parameters: ["encoding_format", "user"],
  },
  rerank: {
    does: "ranks documents",
    path: "/v1/rerank",
    hasOutput: false,
    hasInput: true,
    units: ["request", "search_unit"],
    parameters: ["top_n", "max_tokens_per_doc", "return_documents", "user"],
  },
  moderation: {
    does: "moderates texts",
    path: "/v1/moderations",
    hasOutput: false,
    hasInput: true,
    units: ["request"],
    parameters: ["user"],
  },
  image: {
    does: "makes images",
    path: "/v1/images/generations",
    hasOutput: false,
    hasInput: true,
    units: ["request", "image", "image_token", "text_token"],
    parameters: ["size", "stream", "user"],
  },
  transcription: {
    does: "transcribes audio",
    path: "/v1/audio/transcriptions",
    hasOutput: false,
    hasInput: false,
    units: ["request", "second"],
    parameters: ["language", "prompt", "temperature", "stream", "user"],
  },
} as const satisfies Readonly<Record<string, KindRow>>;

export type Kind = keyof typeof KINDS;
/** A kind without text output, paid by its input. */
export type InputKind = {
  [K in Kind]: (typeof KINDS)[K]["hasOutput"] extends false ? K : never;
}[Kind];
/** The units of a kind that its usage counts. */
export type UnitOf<K extends Kind> = Extract<(typeof KINDS)[K]["units"][number], CountedUnit>;

const [FIRST, ...MORE] = Object.keys(KINDS).filter(isKind);
/** Typed as non-empty for enums. */
export const KIND_NAMES: readonly [Kind, ...Kind[]] = [FIRST ?? "chat", ...MORE];

function isKind(name: string): name is Kind {
  return Object.hasOwn(KINDS, name);
}
