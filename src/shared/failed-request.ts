import * as z from "zod/mini";
import {
  SKIPPED_ROUTES_MAX,
  failedProviderAttemptSchema,
  skippedRouteSchema,
} from "./generation.ts";
import type { FailedAttempt, SkippedRoute } from "./generation.ts";

/** The error that the client received, which never quotes prompt or output. */
export type ReportedError = {
  readonly code: string;
  readonly message: string;
  /** HTTP status. 200 if the stream had started. */
  readonly status: number;
  readonly param: string | null;
};

/** A paid request that failed. Durations are in ms. */
export type FailedRequest = {
  readonly id: string;
  /** Arrival time (Unix ms). */
  readonly at: number;
  readonly keyId: string;
  readonly externalId: string | null;
  /** The requested model, as sent. `model` is its ID. Null without a valid model. */
  readonly askedModel: string | null;
  readonly model: string | null;
  readonly door: string;
  readonly streamed: boolean | null;
  readonly durationMs: number;
  /** Time until the client disconnected, in ms, or null. */
  readonly clientLeftMs: number | null;
  readonly error: ReportedError;
  readonly attempts: readonly FailedAttempt[];
  readonly skipped?: readonly SkippedRoute[];
};

export type HourlyFailureCount = {
  readonly hour: number;
  readonly keyId: string;
  readonly code: string;
  readonly status: number;
  readonly count: number;
  readonly lastAt: number;
  readonly lastId: string;
};

export type FailureBatch = {
  readonly requests: readonly FailedRequest[];
  readonly counts: readonly HourlyFailureCount[];
};

export const ERROR_MESSAGE_CHARACTERS_MAX = 500;
/** Maximum number of last attempts that a failed request reports. */
export const REPORTED_ATTEMPTS_MAX = 16;
export const REQUESTS_PER_FAILURE_BATCH_MAX = 100;
export const COUNTS_PER_FAILURE_BATCH_MAX = 1000;

/**
 * A query for failures in the hours that start from `fromMs` to before `beforeMs`. A null `keyIds`
 * matches all keys.
 */
export type FailureQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly keyIds: readonly string[] | null;
};
export type FailureReport = { readonly counts: readonly HourlyFailureCount[] };

/** The dimensions by which stored failures can be grouped and filtered. */
export const FAILURE_DIMENSIONS = ["model", "provider", "user"] as const;
export type FailureDimension = (typeof FAILURE_DIMENSIONS)[number];
export type StoredFailureQuery = FailureQuery & {
  readonly by: FailureDimension;
  readonly only: Readonly<Record<FailureDimension, readonly string[] | null>>;
};
/**
 * The failures of one model, last-called provider or end user. `group` is null for requests without
 * one.
 */
export type FailureGroup = {
  readonly group: string | null;
  count: number;
  lastAt: number;
  lastId: string;
};
/** A report of stored failures. Failures before `completeFrom` (Unix ms) may be missing. */
export type StoredFailureReport = {
  readonly groups: readonly FailureGroup[];
  readonly completeFrom: number;
};

const nonNegativeInt = z.int().check(z.minimum(0));
const shortText = z.string().check(z.maxLength(256));
const requestIdSchema = z.string().check(z.regex(/^req_[0-9A-Za-z]{24}$/));

const requestSchema: z.ZodMiniType<FailedRequest> = z.object({
  id: requestIdSchema,
  at: nonNegativeInt,
  keyId: shortText,
  externalId: z.nullable(shortText),
  askedModel: z.nullable(shortText),
  model: z.nullable(shortText),
  door: shortText,
  streamed: z.nullable(z.boolean()),
  durationMs: z.number(),
  clientLeftMs: z.nullable(z.number()),
  error: z.object({
    code: shortText,
    message: z.string().check(z.maxLength(ERROR_MESSAGE_CHARACTERS_MAX)),
    status: nonNegativeInt,
    param: z.nullable(shortText),
  }),
  attempts: z.array(failedProviderAttemptSchema).check(z.maxLength(REPORTED_ATTEMPTS_MAX)),
  skipped: z.exactOptional(z.array(skippedRouteSchema).check(z.maxLength(SKIPPED_ROUTES_MAX))),
});
const countSchema: z.ZodMiniType<HourlyFailureCount> = z.object({
  hour: nonNegativeInt,
  keyId: shortText,
  code: shortText,
  status: nonNegativeInt,
  count: nonNegativeInt,
  lastAt: nonNegativeInt,
  lastId: requestIdSchema,
});

export const failureBatchSchema: z.ZodMiniType<FailureBatch> = z.object({
  requests: z.array(requestSchema).check(z.maxLength(REQUESTS_PER_FAILURE_BATCH_MAX)),
  counts: z.array(countSchema).check(z.maxLength(COUNTS_PER_FAILURE_BATCH_MAX)),
});
