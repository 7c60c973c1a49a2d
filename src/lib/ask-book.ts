import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { logWarning, reasonOf } from "./log.ts";
import type { LogFields } from "./log.ts";
import { storageFailure } from "./storage-failure.ts";
import { within } from "./within.ts";

const BOOK_TIMEOUT_MS = 5000;

/**
 * What the book (D1) answers to a statement. A book that fails or is slow is our own fault:
 * `storage_unavailable` or `overloaded`, with one log line of this event and these fields. What was sent late may still be
 * carried out, so a repeat must do no harm.
 */
export async function askBook<T>(
  statement: () => Promise<T>,
  event: string,
  fields: LogFields,
): Promise<Result<T>> {
  try {
    return success(await within(statement(), BOOK_TIMEOUT_MS));
  } catch (error) {
    logWarning(event, { ...fields, reason: reasonOf(error) });
    return refuse(storageFailure(error));
  }
}
