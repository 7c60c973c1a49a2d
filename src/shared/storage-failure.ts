import type { Failure } from "./failure.ts";

/** What the runtime puts on the errors of Durable Object calls (cloudflare docs, "Error handling"). */
type CallError = { readonly retryable?: unknown; readonly overloaded?: unknown };

/**
 * A thrown storage or Durable Object error as a failure: `overloaded` when the object said so, else
 * `storage_unavailable`. Never a verdict about the caller: what is not known is never a 401.
 */
export function storageFailure(error: unknown): Failure {
  return isOverloaded(error) ? { kind: "overloaded" } : { kind: "storage_unavailable" };
}

/** Whether a failure is one of those: whoever answers it cannot say, now, what is true. */
export function isStorageFailure({ kind }: Failure): boolean {
  return kind === "storage_unavailable" || kind === "overloaded";
}

/** The same call may pass on a fresh stub. An overloaded object must not be asked again. */
export function mayRetry(error: unknown): boolean {
  return callError(error).retryable === true && !isOverloaded(error);
}

function isOverloaded(error: unknown): boolean {
  return callError(error).overloaded === true;
}

function callError(error: unknown): CallError {
  return typeof error === "object" && error !== null ? error : {};
}

/** An error of D1 or one that came out of a Durable Object call; anything else is a bug of ours. */
export function isStorageError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const marks = ["remote", "retryable", "overloaded", "durableObjectReset"];
  return error.message.startsWith("D1_") || marks.some((mark) => mark in error);
}
