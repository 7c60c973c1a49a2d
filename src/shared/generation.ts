import * as z from "zod/mini";
import { REGIONS } from "./regions.ts";
import { mintedAt } from "./id.ts";
import { priceSchema, strictUsageSchema, usageSchema } from "./usage.ts";
import type { Price, Usage } from "./usage.ts";

/**
 * An attempt at a provider that failed: which route (provider:upstream id), and why in a word of ours. `status`: its
 * answer's, where it had one that is no affair of ours alone. Times in ms since the request came.
 */
export type FailedAttempt = {
  readonly route: string;
  readonly why: string;
  readonly status?: number;
  readonly startedMs?: number;
  readonly endedMs?: number;
};

/**
 * What is kept of one paid request beside its money: never a prompt, never an answer. Whose it was its hold knows at
 * home: this waits in other regions and may stand in the log. Times in ms.
 */
export type Generation = {
  readonly model: string;
  readonly provider: string;
  readonly region: string;
  readonly keyId: string;
  readonly streamed: boolean;
  readonly usage: Usage;
  readonly price: Price;
  /**
   * Since when that price was in force, Unix ms (null: as long as it was configured), and the price list that had it
   * (null: none). Left out of what an older release kept.
   */
  readonly origin?: { readonly from: number | null; readonly list: string | null };
  /** What the provider bills by its list; left out where that is not known. Never shown to a customer. */
  readonly bought?: Price;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly estimated: boolean;
  readonly finishReason: string | null;
  /** Left out where the first attempt served. */
  readonly failed?: readonly FailedAttempt[];
};

/** A failed attempt as a peer sends it. */
export const attemptSchema: z.ZodMiniType<FailedAttempt> = z.object({
  route: z.string(),
  why: z.string(),
  status: z.exactOptional(z.int()),
  startedMs: z.exactOptional(z.number()),
  endedMs: z.exactOptional(z.number()),
});
const ran = {
  model: z.string(),
  provider: z.string(),
  keyId: z.string(),
  streamed: z.boolean(),
  usage: usageSchema,
  price: priceSchema,
  origin: z.exactOptional(z.object({ from: z.nullable(z.int()), list: z.nullable(z.string()) })),
  bought: z.exactOptional(priceSchema),
  firstByteMs: z.nullable(z.number()),
  durationMs: z.number(),
  estimated: z.boolean(),
  finishReason: z.nullable(z.string()),
  failed: z.exactOptional(z.array(attemptSchema)),
};
/**
 * A generation as a peer sends it, who says by its signature where it ran. No outcome is turned away for what
 * does not touch money: a clock that stepped back, a long reason.
 */
export const peerGenerationSchema: z.ZodMiniType<Omit<Generation, "region">> = z.object(ran);

const word = z.string().check(z.minLength(1), z.maxLength(256));
/** The same as it is logged, checked field by field where a person brings it back. */
export const generationSchema: z.ZodMiniType<Generation> = z.object({
  ...ran,
  model: word,
  provider: word,
  region: z.enum(REGIONS),
  keyId: z.string().check(z.refine((id) => mintedAt(id, "key_") !== null, "must be a key's id")),
  usage: strictUsageSchema,
  // not bounded by 0: a clock may step back during a request, and its charge is due all the same
  firstByteMs: z.nullable(z.int()),
  durationMs: z.int(),
  finishReason: z.nullable(word),
});

const REQUEST_ID = "req_";
/** What stands before a request's own characters in the ids of its answers, at one door or another. */
const ANSWER_IDS = ["chatcmpl-", "cmpl-", "resp_", "msg_"] as const;

/** The request that a client names by its request id or by its answer's id; null: neither is well-formed. */
export function requestIdOf(named: string): string | null {
  const prefix = ANSWER_IDS.find((answer) => named.startsWith(answer));
  const id = prefix === undefined ? named : REQUEST_ID + named.slice(prefix.length);
  return mintedAt(id, REQUEST_ID) === null ? null : id;
}
