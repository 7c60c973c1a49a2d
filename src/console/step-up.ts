import type { PersonSession } from "../contracts/console-session.ts";

/** How long a log-in is fresh. */
export const FRESH_MS = 600_000;

/** Whether the person proved who they are within ten minutes; a time ahead of our clock proves nothing. */
export function isFresh({ freshAt }: Pick<PersonSession, "freshAt">, nowMs: number): boolean {
  return freshAt <= nowMs + SKEW_MS && nowMs - freshAt <= FRESH_MS;
}

/** Isolates' clocks differ by less. */
const SKEW_MS = 5000;

/** What lasts beyond a session below `/v1`: keys and who hears of an organisation. */
const LASTING: readonly (readonly [method: RegExp, path: RegExp])[] = [
  [/POST/, /^\/v1\/(?:keys|sessions)$/],
  [/POST/, /^\/v1\/(?:keys|webhooks)\/[^/]+\/rotate$/],
  [/PATCH/, /^\/v1\/keys\/[^/]+$/],
  [/POST|PATCH|DELETE/, /^\/v1\/webhooks(?:\/[^/]+)?$/],
  [/PATCH/, /^\/v1\/orgs\/[^/]+$/],
  [/POST/, /^\/v1\/credits\//],
];

/** Whether a call wants a fresh log-in of a person. */
export function isLasting(method: string, path: string): boolean {
  return LASTING.some(([methods, paths]) => methods.test(method) && paths.test(path));
}
