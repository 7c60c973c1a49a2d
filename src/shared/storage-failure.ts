import type { Failure } from "./failure.ts";

type CallError = { readonly retryable?: unknown; readonly overloaded?: unknown };

/** Converts an error from D1 or an object to `overloaded` or `storage_unavailable`. */
export function toStorageFailure(error: unknown): Failure {
  return isOverloaded(error) ? { kind: "overloaded" } : { kind: "storage_unavailable" };
}

export function isStorageFailure({ kind }: Failure): boolean {
  return kind === "storage_unavailable" || kind === "overloaded";
}

/** Reports whether another try of a failed object call can succeed. */
export function isRetryable(error: unknown): boolean {
  return callError(error).retryable === true && !isOverloaded(error);
}

function isOverloaded(error: unknown): boolean {
  return callError(error).overloaded === true;
}

function callError(error: unknown): CallError {
  return typeof error === "object" && error !== null ? error : {};
}

/** Reports whether an error came from D1 or a Durable Object call. Other errors are bugs. */
export function isStorageError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const marks = ["remote", "retryable", "overloaded", "durableObjectReset"];
  return error.message.startsWith("D1_") || marks.some((mark) => mark in error);
}
