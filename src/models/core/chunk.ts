import type { JsonObject } from "./json-value.ts";

/**
 * What a model says, in OpenAI's shape: what every wire makes of its host's answer, and what every door writes from.
 * Nothing in it need be doubted; what is left out was not said.
 */
export type Delta = {
  readonly role?: "assistant";
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string;
  /** What the model's maker needs back in the next turn. */
  readonly reasoning_details?: readonly JsonObject[];
  readonly annotations?: readonly unknown[];
  readonly tool_calls?: readonly DeltaCall[];
  /** Of legacy functions. */
  readonly function_call?: DeltaFunction;
};

/** A call, or in a stream a piece of one: `index` says of which, and id, type and name come once. */
export type DeltaCall = {
  readonly index?: number;
  readonly id?: string;
  readonly type?: "function" | "custom";
  readonly function?: DeltaFunction;
  readonly custom?: { readonly name?: string; readonly input?: string };
  /** What must come back beside the call: Google's thought signature. */
  readonly extra_content?: JsonObject;
};
export type DeltaFunction = { readonly name?: string; readonly arguments?: string };

type ChoiceHead = {
  readonly index: number;
  readonly logprobs?: JsonObject | null;
  readonly finish_reason: string | null;
};
export type ChunkChoice = ChoiceHead & { readonly delta: Delta };

/** A piece of an answer. */
export type Chunk = {
  readonly id?: string;
  readonly object?: string;
  readonly created?: number;
  readonly model?: string;
  readonly service_tier?: string;
  readonly system_fingerprint?: string;
  readonly choices: readonly ChunkChoice[];
};

export type CompletionChoice = ChoiceHead & { readonly message: Delta };

/** A whole answer. */
export type Completion = Omit<Chunk, "choices"> & {
  readonly choices: readonly CompletionChoice[];
  readonly usage?: JsonObject;
};
