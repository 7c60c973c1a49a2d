import { failureObject } from "../http/failure-response.ts";
import type { Failure } from "../lib/failure.ts";
import type { Receipt } from "../core/door.ts";
import type { JsonObject } from "../core/provider.ts";
import { wireUsage } from "../core/wire-usage.ts";

/** Stands for a text while the JSON around it is written; no upstream can know it. */
export const MARK = "\u0000text\u0000";
const DONE = "data: [DONE]\n\n";

/** An event of a stream of OpenAI's, as it is sent. */
export function eventOf(object: JsonObject): string {
  return `data: ${JSON.stringify(object)}\n\n`;
}

/** What stands before and after a text in an event that was written with `MARK` in its place. */
export function aroundMark(written: string): { readonly before: string; readonly after: string } {
  const [before = "", after = ""] = written.split(JSON.stringify(MARK));
  return { before, after };
}

/** How a stream ends: with its usage and what it cost in an event like `chunk`, where that was asked for. */
export function lastEvents(
  chunk: JsonObject,
  { usage, costMicro }: Receipt,
  includeUsage: boolean,
): string {
  if (!includeUsage) return DONE;
  const told = { ...wireUsage(usage), cost_micro: costMicro };
  return eventOf({ ...chunk, usage: told }) + DONE;
}

/** How a stream ends that failed. */
export function failedEvent(failure: Failure): string {
  return eventOf({ error: failureObject(failure) });
}
