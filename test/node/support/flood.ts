import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Account } from "./account.ts";
import { answerOf } from "./account.ts";
import { openRaw } from "./raw-request.ts";
import type { RawConnection } from "./raw-request.ts";
import type { TestRegion } from "./two-regions.ts";

/** Concurrent requests, and the number that the budget covers. */
export const REQUESTS = 200;
export const AFFORDABLE = 20;
const POLL_MS = 20;
/** The minimum equals the maximum, because caps below 64 tokens are never lowered. */
const HELLO = { messages: [{ role: "user", content: "hold this" }], max_tokens: 48 };
export const STALL = { ...HELLO, model: "sandbox/stall" };
export const ECHO = { ...HELLO, model: "sandbox/echo" };
export const FLOOD_BINDINGS = { DRAIN_S: "0" };

export type Rejected = { readonly status: number; readonly error: Record<string, unknown> };
type Flood = {
  readonly granted: readonly RawConnection[];
  readonly refused: readonly Rejected[];
};

/** Sends a completion on a connection that the test can reset. */
export function openChat(region: TestRegion, key: string, body: object): Promise<RawConnection> {
  return openRaw({
    url: `${region.baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
}

export function sendMany(
  openRequest: () => Promise<RawConnection>,
  count: number = REQUESTS,
): Promise<RawConnection[]> {
  return Promise.all(Array.from({ length: count }, openRequest));
}

/** Waits until some of the requests are granted. */
export async function waitUntilRunning(owner: Account): Promise<void> {
  while ((await owner.fullBalance()).open_holds === 0) await sleep(1);
}

/**
 * Sends concurrent requests that stay open unless they are rejected permanently. Retries 503
 * responses of a busy region, few at a time after the others, so that a slow machine doesn't use up
 * the key's limit. In another region, a 503 can leave a hold until it is voided, so requests
 * rejected because of it are sent again.
 */
export async function flood(
  owner: Account,
  openRequest: () => Promise<RawConnection>,
  first: () => Promise<RawConnection[]> = () => sendMany(openRequest),
): Promise<Flood> {
  const open = new Set(await first());
  const refused: Rejected[] = [];
  let busy = 0; // requests to send again
  for (;;) {
    const answers = answered(open);
    refused.push(...answers.filter(({ status }) => status !== 503));
    busy += answers.filter(({ status }) => status === 503).length;
    const { open_holds: holds } = await owner.fullBalance();
    expect(holds).toBeLessThanOrEqual(AFFORDABLE);
    if (holds === AFFORDABLE && open.size === AFFORDABLE && busy === 0) {
      return { granted: [...open], refused };
    }
    const missing = holds < AFFORDABLE && open.size < AFFORDABLE ? AFFORDABLE - open.size : 0;
    const again = open.size <= AFFORDABLE ? Math.min(busy, AFFORDABLE) : 0;
    busy -= again;
    for (const connection of await sendMany(openRequest, Math.max(again, missing))) {
      open.add(connection);
    }
    await sleep(POLL_MS);
  }
}

/** Removes rejected requests from `open`, and returns their responses. */
function answered(open: Set<RawConnection>): Rejected[] {
  const answers: Rejected[] = [];
  for (const connection of open) {
    const answer = refusalIn(connection);
    if (answer === null) continue;
    open.delete(connection);
    answers.push(answer);
  }
  return answers;
}

/** Returns the error of a request, or null while there is none. */
function refusalIn(connection: RawConnection): Rejected | null {
  const { status, body } = answerOf(connection);
  if (Number.isNaN(status) || status === 200 || !body.includes("}}")) return null;
  const text = body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1);
  return { status, error: (JSON.parse(text) as { error: Record<string, unknown> }).error };
}
