import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, vi } from "vitest";
import type { WebhookDeliveries } from "../../src/events/webhooks/webhook-deliveries.do.ts";
import { openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";

export const HOUR = 3_600_000;
/** Maximum wait for automatic work on a slow machine. */
export const LONG = { timeout: 15_000, interval: 2 };

export type Sent = { readonly url: string; readonly headers: Headers; readonly body: string };
export type Hook = { readonly id: string; readonly secret: string };
export type Delivery = {
  readonly id: string;
  readonly event_id: string;
  readonly state: string;
  readonly attempts: number;
  readonly error: string | null;
  readonly answer: string | null;
  readonly type: string;
  readonly last_attempt_at: string | null;
  readonly next_attempt_at: string | null;
};
/** Returns a receiver's response. */
type Receiver = (sent: Sent) => Response | Promise<Response>;

export let account: Account;
let sent: Sent[];
/** Receivers by host. Calls to other hosts reach the network. */
export let receivers: Record<string, Receiver>;
/** The current test's path of webhooks. Webhooks of earlier tests may still retry. */
let hookPath = "";

/**
 * Creates an organization without credits before each test, and replaces the network by receivers.
 */
export function useReceivers(): void {
  beforeEach(async () => {
    sent = [];
    receivers = {};
    hookPath = `/hook-${crypto.randomUUID()}`;
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const real = globalThis.fetch;
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      const { hostname, pathname } = new URL(request.url);
      const receiver = receivers[hostname];
      if (receiver === undefined) return real(input, init);
      if (pathname.startsWith("/hook-") && !pathname.startsWith(hookPath)) {
        return new Response("", { status: 500 });
      }
      const one = { url: request.url, headers: request.headers, body: await request.text() };
      sent.push(one);
      const ended = Promise.withResolvers<Response>();
      init?.signal?.addEventListener("abort", () => ended.reject(new Error("aborted")));
      return Promise.race([receiver(one), ended.promise]);
    });
    account = await openAccount({ credits: 0 });
  });
  afterEach(() => {
    setClock(null);
    vi.restoreAllMocks();
  });
}

export const callWebhooks = (method: string, path: string, body?: object): Promise<Response> =>
  send(`/v1/webhooks${path}`, { method, key: account.key, ...(body !== undefined && { body }) });

export async function createWebhook(host: string, more: object = {}): Promise<Hook> {
  const response = await callWebhooks("POST", "", { url: `https://${host}${hookPath}`, ...more });
  expect(response.status).toBe(201);
  return response.json<Hook>();
}

export async function deliveriesOf(id: string): Promise<readonly Delivery[]> {
  const response = await callWebhooks("GET", `/${id}/deliveries?limit=100`);
  expect(response.status).toBe(200);
  return (await response.json<{ deliveries: readonly Delivery[] }>()).deliveries;
}

/** Waits until the webhook's deliveries match, newest first. */
export async function expectDeliveries({ id }: Hook, expected: readonly object[]): Promise<void> {
  await vi.waitFor(async () => expect(await deliveriesOf(id)).toMatchObject(expected), LONG);
}

export const object = () => env.WEBHOOK_DELIVERIES.getByName(account.orgId);
/** Runs all due work, as the alarm does. */
export const runWebhookAlarm = (): Promise<void> =>
  runInDurableObject(object(), (deliveries: WebhookDeliveries) => deliveries.alarm());

/** Waits until all messages to these webhooks had this number of attempts, with stored results. */
export function waitUntilAttempted(
  hooks: readonly Hook[],
  attempts: number,
): Promise<readonly Delivery[]> {
  return vi.waitFor(async () => {
    const all = (await Promise.all(hooks.map(({ id }) => deliveriesOf(id)))).flat();
    expect(new Set(all.map((one) => one.attempts))).toEqual(new Set([attempts]));
    return all;
  }, LONG);
}

export const callsTo = (host: string): readonly Sent[] =>
  sent.filter(({ url }) => new URL(url).hostname === host);
export const ids = (host: string): readonly (string | null)[] => [
  ...new Set(callsTo(host).map(({ headers }) => headers.get("webhook-id"))),
];
