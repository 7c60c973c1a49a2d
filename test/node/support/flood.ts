import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Account } from "./account.ts";
import { answerOf } from "./account.ts";
import { openRaw } from "./raw-request.ts";
import type { RawConnection } from "./raw-request.ts";
import type { TestRegion } from "./two-regions.ts";

/** Requests at once, and how many of them the budget pays for. */
export const ASKED = 200;
export const AFFORDABLE = 20;
const POLL_MS = 20;
/** Least = most: fewer than 64 tokens are never cut. */
const HELLO = { messages: [{ role: "user", content: "hold this" }], max_tokens: 48 };
export const STALL = { ...HELLO, model: "sandbox/stall" };
export const ECHO = { ...HELLO, model: "sandbox/echo" };
export const FLOOD_BINDINGS = { DRAIN_S: "0" };

export type Refused = { readonly status: number; readonly error: Record<string, unknown> };
type Flood = {
  readonly granted: readonly RawConnection[];
  readonly refused: readonly Refused[];
};

/** A completion on a connection that the test can reset. */
export function openChat(region: TestRegion, key: string, body: object): Promise<RawConnection> {
  return openRaw({
    url: `${region.baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
}

/** So many requests at once. */
export function asked(
  ask: () => Promise<RawConnection>,
  count: number = ASKED,
): Promise<RawConnection[]> {
  return Promise.all(Array.from({ length: count }, ask));
}

/** Waits until some of the requests are granted. */
export async function underWay(owner: Account): Promise<void> {
  while ((await owner.standing()).open_holds === 0) await sleep(1);
}

/**
 * So many requests at once that are never answered, or stall in their stream, unless they are refused for
 * good. A region that is too busy for one says 503: it is sent again, few at a time when the others are
 * answered, or a slow machine would use up the key's minute. Away from home a 503 may leave a hold until it
 * is made void, which others are refused for: their places are asked for again.
 */
export async function flood(
  owner: Account,
  ask: () => Promise<RawConnection>,
  first: () => Promise<RawConnection[]> = () => asked(ask),
): Promise<Flood> {
  const open = new Set(await first());
  const refused: Refused[] = [];
  let busy = 0; // to be sent again
  for (;;) {
    const answers = answered(open);
    refused.push(...answers.filter(({ status }) => status !== 503));
    busy += answers.filter(({ status }) => status === 503).length;
    const { open_holds: holds } = await owner.standing();
    expect(holds).toBeLessThanOrEqual(AFFORDABLE);
    if (holds === AFFORDABLE && open.size === AFFORDABLE && busy === 0) {
      return { granted: [...open], refused };
    }
    const missing = holds < AFFORDABLE && open.size < AFFORDABLE ? AFFORDABLE - open.size : 0;
    const again = open.size <= AFFORDABLE ? Math.min(busy, AFFORDABLE) : 0;
    busy -= again;
    for (const connection of await asked(ask, Math.max(again, missing))) open.add(connection);
    await sleep(POLL_MS);
  }
}

/** Takes out of `open` what was refused by now: the answers. */
function answered(open: Set<RawConnection>): Refused[] {
  const answers: Refused[] = [];
  for (const connection of open) {
    const answer = refusalIn(connection);
    if (answer === null) continue;
    open.delete(connection);
    answers.push(answer);
  }
  return answers;
}

/** The error that a request was answered with; null while there is none. */
function refusalIn(connection: RawConnection): Refused | null {
  const { status, body } = answerOf(connection);
  if (Number.isNaN(status) || status === 200 || !body.includes("}}")) return null;
  const text = body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1);
  return { status, error: (JSON.parse(text) as { error: Record<string, unknown> }).error };
}
