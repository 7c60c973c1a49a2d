import { randomBytes } from "node:crypto";
import { answerOf } from "./account.ts";
import type { Account } from "./account.ts";
import { openRaw } from "./raw-request.ts";
import type { TestRegion } from "./two-regions.ts";

/**
 * A client's knowledge at the end of a request. `paid`: complete response, with its cost if
 * reported. `charged`: disconnected mid-stream. `free`: rejected. `unknown`: the region crashed.
 */
export type ClientOutcome = {
  readonly id: string;
  readonly fate: "paid" | "charged" | "free" | "unknown";
  readonly cost: number | null;
};
type Send = (account: Account, region: TestRegion, input: ChatInput) => Promise<ClientOutcome>;
type ChatInput = { readonly input: string; readonly user: string | undefined };

const USERS = ["ann", "bob", undefined, "cy"];

/** JSON, streams with and without usage, embeddings, disconnects and provider failures. */
export const SHAPES: readonly Send[] = [
  (account, region, input) => json(account, region, "/chat/completions", chatOf("echo", input)),
  (account, region, input) => streamed(account, region, withUsage(chatOf("echo", input))),
  (account, region, { input, user }) =>
    json(account, region, "/embeddings", { model: "sandbox/embed", input: [input, "b"], user }),
  (account, region, input) => streamed(account, region, chatOf("no-usage", input)),
  (account, region, input) => disconnecting(account, region, withUsage(chatOf("endless", input))),
  (account, region, input) => json(account, region, "/chat/completions", chatOf("echo", input)),
  (account, region, input) =>
    json(account, region, "/chat/completions", chatOf("status-500", input)),
  (account, region, input) => streamed(account, region, withUsage(chatOf("split-utf8", input))),
];

/** Sends the n-th request of a mixed load to a region. */
export function send(n: number, account: Account, region: TestRegion): Promise<ClientOutcome> {
  const shape = SHAPES[n % SHAPES.length];
  if (shape === undefined) throw new Error("no such shape");
  const input = randomBytes(1 + (n % 40)).toString("hex");
  return shape(account, region, { input, user: USERS[Math.floor(n / SHAPES.length) % 4] });
}

/** Sends `count` requests, `callers` at a time. */
export async function sendAll(
  count: number,
  callers: number,
  one: (n: number) => Promise<ClientOutcome>,
): Promise<ClientOutcome[]> {
  const outcomes: ClientOutcome[] = [];
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) outcomes.push(await one(next++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return outcomes;
}

export function chatOf(model: string, { input, user }: ChatInput): object {
  const messages = [{ role: "user", content: `${input} ${input}` }];
  return { model: `sandbox/${model}`, messages, user, max_tokens: 200 };
}

export function withUsage(body: object): object {
  return { ...body, stream: true, stream_options: { include_usage: true } };
}

/** Sends a request to any region with an account's key. */
export function callAt(
  region: TestRegion,
  account: Account,
  path: string,
  body?: object,
): Promise<Response> {
  return fetch(`${region.baseUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const NEVER_HEARD: ClientOutcome = { id: "", fate: "unknown", cost: null };

async function json(
  account: Account,
  region: TestRegion,
  path: string,
  body: object,
): Promise<ClientOutcome> {
  const response = await callAt(region, account, path, body).catch(() => null);
  if (response === null) return NEVER_HEARD;
  const id = idOf(response.headers);
  const text = await response.text().catch(() => null);
  if (text === null) return { ...NEVER_HEARD, id };
  if (response.status !== 200) return { id, fate: "free", cost: null };
  return { id, fate: "paid", cost: Number(response.headers.get("x-cost-micro")) };
}

async function streamed(
  account: Account,
  region: TestRegion,
  body: object,
): Promise<ClientOutcome> {
  const whole = { ...body, stream: true };
  const response = await callAt(region, account, "/chat/completions", whole).catch(() => null);
  if (response === null) return NEVER_HEARD;
  const id = idOf(response.headers);
  const text = await response.text().catch(() => "");
  if (response.status !== 200) return { id, fate: "free", cost: null };
  if (!text.includes("data: [DONE]")) return { ...NEVER_HEARD, id };
  const cost = /"cost_micro":(\d+)/.exec(text)?.[1];
  return { id, fate: "paid", cost: cost === undefined ? null : Number(cost) };
}

/** Resets the connection after the first text of a stream. */
async function disconnecting(
  account: Account,
  region: TestRegion,
  body: object,
): Promise<ClientOutcome> {
  const connection = await openRaw({
    url: `${region.baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${account.key}` },
    body: JSON.stringify(body),
  }).catch(() => null);
  if (connection === null) return NEVER_HEARD;
  await connection.readUntil(
    (received) => received.includes('"content":"') || received.includes('"error":'),
  );
  const { status, headers } = answerOf(connection);
  await connection.reset();
  const id = idOf(headers);
  if (id === "") return NEVER_HEARD;
  return { id, fate: status === 200 ? "charged" : "free", cost: null };
}

function idOf(headers: Headers): string {
  return headers.get("x-request-id") ?? "";
}
