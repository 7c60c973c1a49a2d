import * as z from "zod/mini";
import { attemptSchema } from "./generation.ts";
import type { FailedAttempt } from "./generation.ts";

/** The error that a client received, in our words, never text of a prompt or output. */
export type ReportedError = {
  readonly code: string;
  readonly message: string;
  /** 200 if a stream had started. */
  readonly status: number;
  readonly param: string | null;
};

/** A paid request that got an error response, whatever happened to its hold. Times are ms. */
export type FailedRequest = {
  readonly id: string;
  /** Arrival time (Unix ms). */
  readonly at: number;
  readonly keyId: string;
  readonly externalId: string | null;
  /** The requested model and the resolved ID; null if the body named no possible model. */
  readonly askedModel: string | null;
  readonly model: string | null;
  readonly door: string;
  /** Null if the body couldn't be parsed. */
  readonly streamed: boolean | null;
  readonly durationMs: number;
  /** Ms until the client disconnected; null if it stayed. */
  readonly clientLeftMs: number | null;
  readonly error: ReportedError;
  readonly attempts: readonly FailedAttempt[];
};

/** The failures of a key with one code in an hour. */
export type FailureCount = {
  /** Start of the hour (Unix ms). */
  readonly hour: number;
  readonly keyId: string;
  readonly code: string;
  readonly status: number;
  readonly count: number;
  readonly lastAt: number;
  readonly lastId: string;
};

/** Failures that an isolate reports to a wallet: the newest requests and total counts. */
export type FailedBatch = {
  readonly requests: readonly FailedRequest[];
  readonly counts: readonly FailureCount[];
};

/** Maximum characters of a stored message. */
export const ERROR_MESSAGE_MAX = 500;
/** Maximum requests per batch, including a peer's. */
export const BATCH_REQUESTS_MAX = 100;
export const BATCH_COUNTS_MAX = 1000;

/** Hours that start from `fromMs` to before `beforeMs` (Unix ms), optionally of some keys. */
export type FailureQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly keyIds: readonly string[] | null;
};
export type FailureReport = { readonly counts: readonly FailureCount[] };

/** A dimension that only stored failures have. */
export type FailureDimension = "model" | "provider" | "user";
/** A query for stored failures, optionally matching `only`. */
export type KeptFailureQuery = FailureQuery & {
  readonly by: FailureDimension;
  readonly only: Readonly<Record<FailureDimension, readonly string[] | null>>;
};
/** Failures of one model, provider (the last called) or end user; `group` null for none. */
export type FailureGroup = {
  readonly group: string | null;
  count: number;
  lastAt: number;
  lastId: string;
};
/** `completeFrom`: of earlier failures (Unix ms), not every request is stored. */
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

/** A batch from another region. */
export const failedBatchSchema: z.ZodMiniType<FailedBatch> = z.object({
  requests: z.array(requestSchema).check(z.maxLength(BATCH_REQUESTS_MAX)),
  counts: z.array(countSchema).check(z.maxLength(BATCH_COUNTS_MAX)),
});
