import * as z from "zod/mini";
import { attemptSchema } from "./generation.ts";
import type { FailedAttempt } from "./generation.ts";

/** What a client was told of its failure, in our words alone: never a word of a prompt or of an answer. */
export type ReportedError = {
  /** A heading of docs/errors.md, or `client_left`. */
  readonly code: string;
  readonly message: string;
  /** 200 where a stream had begun. */
  readonly status: number;
  readonly param: string | null;
};

/** A request for a paid path that was answered with an error, whatever became of its hold. Times in ms. */
export type FailedRequest = {
  readonly id: string;
  /** When it came, Unix ms. */
  readonly at: number;
  readonly keyId: string;
  readonly externalId: string | null;
  /** What it named, and the id that this came to; null where it named nothing that can be a model. */
  readonly askedModel: string | null;
  readonly model: string | null;
  /** Its path. */
  readonly door: string;
  /** Null where its body was not understood. */
  readonly streamed: boolean | null;
  readonly durationMs: number;
  /** When its client left, since it came; null: it stayed. */
  readonly clientLeftMs: number | null;
  readonly error: ReportedError;
  readonly attempts: readonly FailedAttempt[];
};

/** How many requests of a key failed by one code in an hour. */
export type FailureCount = {
  /** When the hour began, Unix ms. */
  readonly hour: number;
  readonly keyId: string;
  readonly code: string;
  readonly status: number;
  readonly count: number;
  /** Of the newest. */
  readonly lastAt: number;
  readonly lastId: string;
};

/** What an isolate tells a wallet of: the newest requests, and how many there were in all. */
export type FailedBatch = {
  readonly requests: readonly FailedRequest[];
  readonly counts: readonly FailureCount[];
};

/** The longest message that is kept, characters. */
export const ERROR_MESSAGE_MAX = 500;
/** Of one batch: what it is cut to, and what a peer's may have. */
export const BATCH_REQUESTS_MAX = 100;
export const BATCH_COUNTS_MAX = 1000;

/** Of the hours that begin from `fromMs` to before `beforeMs`, Unix ms; of these keys alone, unless that is null. */
export type FailureQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly keyIds: readonly string[] | null;
};
export type FailureReport = { readonly counts: readonly FailureCount[] };

/** What a request that failed has and an hour's count has not. */
export type FailureDimension = "model" | "provider" | "user";
/** As `FailureQuery`, of the requests that are kept by themselves; those of `only` alone where it is not null. */
export type KeptFailureQuery = FailureQuery & {
  readonly by: FailureDimension;
  readonly only: Readonly<Record<FailureDimension, readonly string[] | null>>;
};
/** How many of one model, provider (the last that was asked) or end user; `group` null: of none. */
export type FailureGroup = {
  readonly group: string | null;
  count: number;
  lastAt: number;
  lastId: string;
};
/** `completeFrom`: of what failed before it not every request is kept by itself, Unix ms. */
export type KeptFailureReport = {
  readonly groups: readonly FailureGroup[];
  readonly completeFrom: number;
};

const count = z.int().check(z.minimum(0));
const word = z.string().check(z.maxLength(256));
const id = z.string().check(z.regex(/^req_[0-9A-Za-z]{24}$/));

const requestSchema: z.ZodMiniType<FailedRequest> = z.object({
  id,
  at: count,
  keyId: word,
  externalId: z.nullable(word),
  askedModel: z.nullable(word),
  model: z.nullable(word),
  door: word,
  streamed: z.nullable(z.boolean()),
  durationMs: z.number(),
  clientLeftMs: z.nullable(z.number()),
  error: z.object({
    code: word,
    message: z.string().check(z.maxLength(ERROR_MESSAGE_MAX)),
    status: count,
    param: z.nullable(word),
  }),
  attempts: z.array(attemptSchema).check(z.maxLength(16)),
});
const countSchema: z.ZodMiniType<FailureCount> = z.object({
  hour: count,
  keyId: word,
  code: word,
  status: count,
  count,
  lastAt: count,
  lastId: id,
});

/** A batch as a peer sends it. */
export const failedBatchSchema: z.ZodMiniType<FailedBatch> = z.object({
  requests: z.array(requestSchema).check(z.maxLength(BATCH_REQUESTS_MAX)),
  counts: z.array(countSchema).check(z.maxLength(BATCH_COUNTS_MAX)),
});
