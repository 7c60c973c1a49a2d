import type { Generation } from "../api/types.ts";
import { readWithoutCache } from "./reads.ts";
import { session } from "./session.ts";

const POLL_MS = 1000;
const TRIES_MAX = 60;
const TRIES_WITHOUT_HOLD = 4;

/** Returns the newest requests, or undefined if the session's key can't read them. */
export async function loadNewestRequests(): Promise<readonly Generation[] | undefined> {
  const { key } = session.get() ?? {};
  if (key?.limited === true) return undefined;
  const query = { limit: 20, ...(key && { key_id: key.id }) };
  const read = await readWithoutCache("GET /v1/generations", { query });
  return read.ok ? read.value.generations : undefined;
}

/**
 * Waits for the final bill of the request `id`, or of the only request since `known`. Returns null
 * if no new request placed a hold, or undefined if unknown.
 */
export async function waitForFinalBill(
  known: readonly Generation[] | undefined,
  id: string,
): Promise<Generation | null | undefined> {
  if (known === undefined) return undefined;
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const newest = (await loadNewestRequests()) ?? known;
    const knownAt = newest.findIndex((one) => one.id === known[0]?.id);
    const since = knownAt < 0 ? newest : newest.slice(0, knownAt);
    const match = since.find((one) => one.id === id) ?? (since.length === 1 ? since[0] : undefined);
    if (match && match.status !== "held") return match;
    if (since.length === 0 && tries >= TRIES_WITHOUT_HOLD) return null;
  }
  return undefined;
}
