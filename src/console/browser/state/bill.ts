import type { Generation } from "../api/types.ts";
import { readOnce } from "./reads.ts";
import { session } from "./session.ts";

const EVERY_MS = 1000;
const TRIES = 60;
const TRIES_OF_NOTHING = 4;

/** Returns the newest requests, or undefined if the session's key can't read them. */
export async function newestRequests(): Promise<readonly Generation[] | undefined> {
  const { key } = session.get() ?? {};
  if (key?.limited === true) return undefined;
  const query = { limit: 20, ...(key && { key_id: key.id }) };
  const read = await readOnce("GET /v1/generations", { query });
  return read.ok ? read.value.generations : undefined;
}

/**
 * Waits for the final bill of a request that isn't in `known`. Without an ID (""), the request must
 * be the only new one. Returns null if no hold was placed, or undefined if unknown.
 */
export async function finalBill(
  known: readonly Generation[] | undefined,
  id: string,
): Promise<Generation | null | undefined> {
  if (known === undefined) return undefined;
  for (let tries = 1; tries <= TRIES; tries++) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    const newest = (await newestRequests()) ?? known;
    const before = newest.findIndex((one) => one.id === known[0]?.id);
    const since = before < 0 ? newest : newest.slice(0, before);
    const own = since.find((one) => one.id === id) ?? (since.length === 1 ? since[0] : undefined);
    if (own && own.status !== "held") return own;
    if (since.length === 0 && tries >= TRIES_OF_NOTHING) return null;
  }
  return undefined;
}
