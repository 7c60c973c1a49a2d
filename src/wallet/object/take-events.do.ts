import { success } from "../../lib/failure.ts";
import { logWarning, reasonOf } from "../../lib/log.ts";
import { within } from "../../lib/within.ts";
import { takeEvent } from "../tables/event-rows.do.ts";
import { deleteWaitingEvents, readWaitingEvents, WAITING_PAGE } from "../waiting-events.store.ts";
import type { Decisions } from "./decisions.do.ts";

/** Pages of one look; what is left waits for the next. */
const PAGES_MAX = 20;
const BOOK_TIMEOUT_MS = 5000;

/**
 * Takes the events of the book into the log, then deletes them there: what stands in both after a crash is the
 * same event by its id, and is taken once. Never throws: what could not be taken waits in the book.
 */
export async function takeWaitingEvents(db: D1Database, decisions: Decisions): Promise<void> {
  try {
    const orgId = decisions.tryOpen()?.memory.row.orgId;
    if (orgId === undefined) return;
    for (let page = 0; page < PAGES_MAX; page++) {
      /* oxlint-disable no-await-in-loop -- one page after the other */
      const waiting = await within(readWaitingEvents(db, orgId), BOOK_TIMEOUT_MS);
      if (waiting.length === 0) return;
      const taken = decisions.decide((desk) => {
        desk.storage.transactionSync(() => {
          for (const event of waiting) takeEvent(desk, event);
        });
        return success(null);
      });
      if (!taken.ok) return;
      await within(deleteWaitingEvents(db, waiting), BOOK_TIMEOUT_MS);
      /* oxlint-enable no-await-in-loop */
      if (waiting.length < WAITING_PAGE) return;
    }
  } catch (error) {
    logWarning("events_not_taken", { reason: reasonOf(error) });
  }
}
