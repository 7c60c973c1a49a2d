import type { CountedUnit, Unit } from "./usage.ts";

type KindRow = {
  readonly does: string;
  /** The main path. A kind can have other endpoints. */
  readonly path: `/v1/${string}`;
  /**
   * Whether output tokens are billed. If so, requests have an output cap, and prices have an
   * `output`.
   */
  readonly hasOutput: boolean;
  readonly hasInput: boolean;
  /** The units besides tokens that usage counts, so that they can have a price. */
  readonly units: readonly Unit[];
  readonly parameters: readonly string[];
  readonly isSlow?: true;
};

/** The kinds of calls, with their names in MODELS, model lists and OpenAPI. */
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
    isSlow: true,
  },
  speech: {
    does: "speaks texts",
    path: "/v1/audio/speech",
    hasOutput: false,
    hasInput: false,
    units: ["request", "character"],
    parameters: ["voice", "response_format", "stream_format", "user"],
  },
  ocr: {
    does: "reads documents",
    path: "/v1/ocr",
    hasOutput: false,
    hasInput: false,
    units: ["request", "page"],
    parameters: ["pages", "include_image_base64", "image_limit", "image_min_size", "user"],
    isSlow: true,
  },
} as const satisfies Readonly<Record<string, KindRow>>;

export type Kind = keyof typeof KINDS;
export type InputKind = {
  [K in Kind]: (typeof KINDS)[K]["hasOutput"] extends false ? K : never;
}[Kind];
export type UnitOf<K extends Kind> = Extract<(typeof KINDS)[K]["units"][number], CountedUnit>;

const [FIRST, ...MORE] = Object.keys(KINDS).filter(isKind);
export function isSlowKind(kind: Kind | undefined): boolean {
  const row: KindRow | undefined = kind && KINDS[kind];
  return row?.isSlow === true;
}

export const KIND_NAMES: readonly [Kind, ...Kind[]] = [FIRST ?? "chat", ...MORE];

function isKind(name: string): name is Kind {
  return Object.hasOwn(KINDS, name);
}
