import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { elapsedMs } from "./clock.ts";
import { logWarning, reasonOf } from "./log.ts";
import type { LogFields } from "./log.ts";
import { storageFailure } from "./storage-failure.ts";
import { afterTimeout, within } from "./timers.ts";

const BOOK_TIMEOUT_MS = 5000;
/** Statements of one organization that an isolate has in D1 at the same time: D1 is the whole region's. */
const AT_ONCE = 8;
/** How long one more waits for its turn before it is refused, and how often it looks. */
const PATIENCE_MS = 5000;
const LOOK_MS = 10;
/** What has not ended by then was given up with its request: its place is free. */
const LEASE_MS = 30_000;

/** When each statement under way began, by organization. */
const busy = new Map<string, Set<{ readonly sinceMs: number }>>();

/**
 * What the book (D1) answers to a statement of an organization. A book that fails or is slow is our own
 * fault: `storage_unavailable` or `overloaded`, with one log line of this event and these fields; so is an
 * organization that has had eight statements under way here for five seconds: `overloaded`. What was sent
 * late may still be carried out, so a repeat must do no harm.
 */
export async function queryDatabase<T>(
  statement: () => Promise<T>,
  event: string,
  fields: LogFields & { readonly org_id: string },
): Promise<Result<T>> {
  const orgId = fields.org_id;
  const place = { sinceMs: elapsedMs() };
  for (let waitedMs = 0; !takes(orgId, place); waitedMs = elapsedMs() - place.sinceMs) {
    if (waitedMs >= PATIENCE_MS) return refuse({ kind: "overloaded" });
    // oxlint-disable-next-line no-await-in-loop -- a request may not wait for another's promise
    await new Promise<void>((resolve) => afterTimeout(LOOK_MS, resolve));
  }
  const asked = Promise.resolve()
    .then(statement)
    .finally(() => leave(orgId, place)); // not when it is given up: D1 works on
  try {
    return success(await within(asked, BOOK_TIMEOUT_MS));
  } catch (error) {
    logWarning(event, { ...fields, reason: reasonOf(error) });
    return refuse(storageFailure(error));
  }
}

type BusyPlace = { readonly sinceMs: number };

function takes(orgId: string, place: BusyPlace): boolean {
  const places = busy.get(orgId) ?? new Set<BusyPlace>();
  for (const one of places) if (elapsedMs() - one.sinceMs > LEASE_MS) places.delete(one);
  if (places.size >= AT_ONCE) return false;
  busy.set(orgId, places.add(place));
  return true;
}

function leave(orgId: string, place: BusyPlace): void {
  const places = busy.get(orgId);
  places?.delete(place);
  if (places?.size === 0) busy.delete(orgId);
}
