import type { CountedUnit, Unit } from "./usage.ts";

/** A sandbox model. Prices are in dollars, per million for some units. */
export type SandboxRow = {
  readonly model: string;
  readonly dollars: { readonly [U in Unit | "input"]?: number };
  readonly context?: number;
  readonly abilities?: readonly ("dimensions" | "vision")[];
};

type KindRow = {
  readonly does: string;
  readonly path: `/v1/${string}`;
  /**
   * Whether output tokens are billed. If so, requests have an output cap, and prices have an
   * `output`.
   */
  readonly hasOutput: boolean;
  readonly hasInput: boolean;
  /** The units, besides tokens, in which the kind can be billed. */
  readonly units: readonly Unit[];
  readonly parameters: readonly string[];
  readonly isSlow?: true;
  readonly sandbox?: SandboxRow;
};

/** The kinds of calls, by their names in MODELS, model lists and OpenAPI. */
export const CALL_KINDS = {
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
    sandbox: { model: "embed", dollars: { input: 1 }, abilities: ["dimensions"] },
  },
  rerank: {
    does: "ranks documents",
    path: "/v1/rerank",
    hasOutput: false,
    hasInput: true,
    units: ["request", "search_unit"],
    parameters: ["top_n", "max_tokens_per_doc", "return_documents", "user"],
    sandbox: { model: "rerank", dollars: { search_unit: 0.002 } },
  },
  moderation: {
    does: "moderates texts",
    path: "/v1/moderations",
    hasOutput: false,
    hasInput: true,
    units: ["request"],
    parameters: ["user"],
    sandbox: { model: "moderation", dollars: { request: 0.001 }, abilities: ["vision"] },
  },
  image: {
    does: "makes images",
    path: "/v1/images/generations",
    hasOutput: false,
    hasInput: true,
    units: ["request", "image", "image_token", "text_token", "input_image_token", "input_image"],
    parameters: ["size", "stream", "user"],
    sandbox: {
      model: "image",
      dollars: { input: 1, input_image_token: 1, image: 0.002 },
      context: 32_000,
    },
  },
  transcription: {
    does: "transcribes audio",
    path: "/v1/audio/transcriptions",
    hasOutput: false,
    hasInput: false,
    units: ["request", "second"],
    parameters: ["language", "prompt", "temperature", "stream", "user"],
    isSlow: true,
    sandbox: { model: "transcribe", dollars: { second: 100 } },
  },
  speech: {
    does: "speaks texts",
    path: "/v1/audio/speech",
    hasOutput: false,
    hasInput: true,
    units: ["request", "character", "audio_token"],
    parameters: ["voice", "response_format", "stream_format", "user"],
    sandbox: { model: "speech", dollars: { character: 10 } },
  },
  ocr: {
    does: "reads documents",
    path: "/v1/ocr",
    hasOutput: false,
    hasInput: false,
    units: ["request", "page"],
    parameters: ["pages", "include_image_base64", "image_limit", "image_min_size", "user"],
    isSlow: true,
    sandbox: { model: "ocr", dollars: { page: 0.002 } },
  },
} as const satisfies Readonly<Record<string, KindRow>>;

export type CallKind = keyof typeof CALL_KINDS;
export type CallKindWithoutOutput = {
  [K in CallKind]: (typeof CALL_KINDS)[K]["hasOutput"] extends false ? K : never;
}[CallKind];
export type UnitOfCallKind<K extends CallKind> = Extract<
  (typeof CALL_KINDS)[K]["units"][number],
  CountedUnit
>;

const [FIRST, ...MORE] = Object.keys(CALL_KINDS).filter(isKind);
export function isSlowCallKind(kind: CallKind | undefined): boolean {
  const row: KindRow | undefined = kind && CALL_KINDS[kind];
  return row?.isSlow === true;
}

export const CALL_KIND_NAMES: readonly [CallKind, ...CallKind[]] = [FIRST ?? "chat", ...MORE];

function isKind(name: string): name is CallKind {
  return Object.hasOwn(CALL_KINDS, name);
}
