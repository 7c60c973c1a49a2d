/** What is said of a kind of call wherever its models are sold, listed or priced. */
type KindRow = {
  /** What its models do, after "The model 'x'". */
  readonly does: string;
  /** Where it is asked first of all; a kind may have other doors. */
  readonly path: `/v1/${string}`;
  /** Whether the model writes tokens that are paid for: its requests have a cap, and its prices an `output`. */
  readonly hasOutput: boolean;
  /** Fields of a request that every model of the kind heeds. */
  readonly parameters: readonly string[];
};

/**
 * What is sold: a kind of call is a row here and one of `models/core/kinds.ts`, which says how it is asked. The var MODELS, the
 * lists of models and the OpenAPI document have its name from here.
 */
export const KINDS = {
  chat: {
    does: "chats",
    path: "/v1/chat/completions",
    hasOutput: true,
    parameters: ["max_tokens", "max_completion_tokens", "stream", "user"],
  },
  embeddings: {
    does: "makes embeddings",
    path: "/v1/embeddings",
    hasOutput: false,
    parameters: ["encoding_format", "user"],
  },
} as const satisfies Readonly<Record<string, KindRow>>;

export type Kind = keyof typeof KINDS;
/** A kind whose models take and give no text of their own: what goes in is what is paid for. */
export type InputKind = {
  [K in Kind]: (typeof KINDS)[K]["hasOutput"] extends false ? K : never;
}[Kind];

const [FIRST, ...MORE] = Object.keys(KINDS).filter(isKind);
/** Never empty, as an enum of them must be. */
export const KIND_NAMES: readonly [Kind, ...Kind[]] = [FIRST ?? "chat", ...MORE];

function isKind(name: string): name is Kind {
  return Object.hasOwn(KINDS, name);
}
