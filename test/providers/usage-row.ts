import type { Usage } from "../../src/shared/usage.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";

/** Reads the usage of an answer (a JSON body, or the event that carries it) as its adapter does. */
export type Reader = (answer: JsonObject) => Usage | null;

/** An upstream's recorded usage, what it is billed as, and the three counts that a client then sees. */
export type Row = {
  readonly upstream: string;
  readonly reader: Reader;
  readonly raw: JsonObject;
  /** Input, cache read, cache write, output, reasoning; null: it is estimated. */
  readonly want: readonly [number, number, number, number, number] | null;
  /** prompt_tokens, completion_tokens, total_tokens. */
  readonly wire: readonly [number, number, number] | null;
};
