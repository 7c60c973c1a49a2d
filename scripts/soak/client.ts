import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Leave } from "./plan.ts";
import type { Fate, Seen, Usage } from "./trace.ts";

/** A client waits so long for the next byte, and for the whole of an answer. */
const PATIENCE_MS = 90_000;
/** A slow reader takes a part of a stream, then waits. */
const SLOW_PAUSE_MS = 150;
const SLOW_PAUSES_MAX = 20;

/** One request, on a connection of its own. */
export type Call = {
  readonly url: string;
  readonly key: string;
  readonly body: object | null;
  readonly leave: Leave | null;
  readonly isSlow: boolean;
};
/** What has come of an answer so far. Unix ms. */
type Came = {
  response: IncomingMessage | null;
  answeredMs: number | null;
  firstByteMs: number | null;
  text: string;
};

/** Unix ms with fractions: never steps back. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Sends one request and sees it to its end, whichever that is. Never throws. */
export async function send(call: Call): Promise<Seen> {
  const { url, key, leave } = call;
  const body = call.body === null ? null : JSON.stringify(call.body);
  const sentMs = clockMs();
  const came: Came = { response: null, answeredMs: null, firstByteMs: null, text: "" };
  const { promise: ended, resolve: end } = Promise.withResolvers<Fate>();
  const outgoing = httpRequest(url, {
    method: body === null ? "GET" : "POST",
    agent: false, // a kept connection may be closed under a request: an error that says nothing
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== null && {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      }),
    },
  });
  /** As a client that dies: a TCP reset, not a goodbye. The first end counts. */
  const reset = (fate: Fate): void => {
    end(fate);
    const { socket } = outgoing;
    if (socket === null || socket.connecting) outgoing.destroy();
    else socket.resetAndDestroy();
  };
  outgoing.on("error", () => end("broken"));
  const leaving = reset.bind(null, "left");
  outgoing.on("response", (response) => {
    read(response, { call, came, leaving }).then(end, () => end("broken"));
  });
  const timers = [setTimeout(() => reset("stuck"), PATIENCE_MS)];
  if (leave !== null && "afterMs" in leave) {
    timers.push(setTimeout(() => reset("left"), leave.afterMs));
  }
  outgoing.end(body ?? undefined);
  const fate = await ended;
  for (const timer of timers) clearTimeout(timer);
  return { ...seenOf(came, fate), sentMs, endedMs: clockMs() };
}

/** Takes the answer as it comes, until its end or until the client leaves. */
async function read(
  response: IncomingMessage,
  {
    call,
    came,
    leaving,
  }: { readonly call: Call; readonly came: Came; readonly leaving: () => void },
): Promise<Fate> {
  Object.assign(came, { response, answeredMs: clockMs() });
  const leaveAt =
    call.leave !== null && "afterBytes" in call.leave ? call.leave.afterBytes : Infinity;
  let pauses = 0;
  response.setEncoding("utf8");
  for await (const part of response) {
    came.firstByteMs ??= clockMs();
    came.text += String(part);
    if (came.text.length >= leaveAt) leaving();
    if (call.isSlow && pauses++ < SLOW_PAUSES_MAX) await sleep(SLOW_PAUSE_MS);
  }
  return response.complete ? fateOfWhole(came) : "broken";
}

function fateOfWhole({ response, text }: Came): Fate {
  const isStream = response?.headers["content-type"]?.startsWith("text/event-stream") === true;
  const last = text.endsWith("\n\n") ? text.split("\n\n").at(-2) : undefined;
  if (!isStream || last === "data: [DONE]") return "whole";
  return last?.startsWith('data: {"error":') === true ? "cut" : "mute";
}

function seenOf(came: Came, fate: Fate): Omit<Seen, "sentMs" | "endedMs"> {
  const { response, answeredMs, firstByteMs, text } = came;
  const status = response?.statusCode ?? null;
  const { type, code, message } = errorIn(status === 200 ? "" : text);
  const isLimit = status === 429 && type === "rate_limit_exceeded";
  const isOrganizationLimit = isLimit && message.includes("for your organization");
  const isCounted = headerOf(came, "x-ratelimit-remaining-requests") !== null;
  return {
    answeredMs,
    firstByteMs,
    fate,
    received: text.length,
    status,
    id: headerOf(came, "x-request-id"),
    type: type || null,
    code: code || null,
    ...(fate === "whole" && status === 200 ? receiptOf(came) : { cost: null, usage: null }),
    retryAfter: headerOf(came, "retry-after"),
    isAdmitted: isCounted && (!isLimit || isOrganizationLimit),
    isOrganizationLimit,
  };
}

function headerOf({ response }: Came, name: string): string | null {
  const value = response?.headers[name];
  return typeof value === "string" ? value : null;
}

function receiptOf(came: Came): Pick<Seen, "cost" | "usage"> {
  const told = headerOf(came, "x-cost-micro") ?? /"cost_micro":(\d+)/.exec(came.text)?.[1] ?? null;
  return { cost: told === null ? null : Number(told), usage: usageIn(came.text) };
}

/** Of an answer or of the chunk of a stream that tells it; embeddings have no output. */
function usageIn(text: string): Usage | null {
  const input = /"usage":\{[^}]*"prompt_tokens":(\d+)/.exec(text)?.[1];
  const output = /"usage":\{[^}]*"completion_tokens":(\d+)/.exec(text)?.[1] ?? "0";
  return input === undefined ? null : { input: Number(input), output: Number(output) };
}

/** What a refusal says, "" for what it does not: the client may have left in the midst of it. */
function errorIn(text: string): Record<"type" | "code" | "message", string> {
  try {
    const { error } = JSON.parse(text) as { error: Record<string, unknown> };
    return {
      type: textOf(error["type"]),
      code: textOf(error["code"]),
      message: textOf(error["message"]),
    };
  } catch {
    return { type: "", code: "", message: "" };
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
