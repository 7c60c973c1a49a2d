import type { Price, Usage } from "./usage.ts";

/** What is kept of one paid request beside its money: never a prompt, never an answer. Times in ms. */
export type Generation = {
  readonly model: string;
  readonly provider: string;
  readonly region: string;
  readonly keyId: string;
  readonly externalId: string | null;
  readonly streamed: boolean;
  readonly usage: Usage;
  readonly price: Price;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly estimated: boolean;
  readonly finishReason: string | null;
};
