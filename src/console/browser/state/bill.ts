import type { Generation } from "../api/types.ts";
import { readOnce } from "./reads.ts";
import { session } from "./session.ts";

const EVERY_MS = 1000;
/** Longer than a region works on for a reader who left; nothing found so often is nothing charged. */
const TRIES = 60;
const TRIES_OF_NOTHING = 4;

/** The newest requests of the session's key, or that a person sees; undefined for a key that may not see them. */
export async function newestRequests(): Promise<readonly Generation[] | undefined> {
  const { key } = session.get() ?? {};
  if (key?.limited === true) return undefined;
  const query = { limit: 20, ...(key && { key_id: key.id }) };
  const read = await readOnce("GET /v1/generations", { query });
  return read.ok ? read.value.generations : undefined;
}

/**
 * Waits for the final bill of a request sent after `known`, by its id, or "" without one: then it is the only
 * one since. Null: nothing was held; undefined: unknown.
 */
export async function finalBill(
  known: readonly Generation[] | undefined,
  id: string,
): Promise<Generation | null | undefined> {
  if (known === undefined) return undefined;
  for (let tries = 1; tries <= TRIES; tries++) {
    // oxlint-disable-next-line no-await-in-loop -- it is over when it is
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    const newest = (await newestRequests()) ?? known; // oxlint-disable-line no-await-in-loop -- as above
    const before = newest.findIndex((one) => one.id === known[0]?.id);
    const since = before < 0 ? newest : newest.slice(0, before);
    const own = since.find((one) => one.id === id) ?? (since.length === 1 ? since[0] : undefined);
    if (own && own.status !== "held") return own;
    if (since.length === 0 && tries >= TRIES_OF_NOTHING) return null;
  }
  return undefined;
}
