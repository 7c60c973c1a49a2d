import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Leave } from "./plan.ts";
import { clockMs } from "./trace.ts";
import type { Fate, Seen } from "./trace.ts";

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
/** What has come of an answer so far. */
type Came = {
  response: IncomingMessage | null;
  answeredMs: number | null;
  firstByteMs: number | null;
  text: string;
};

/** Sends one request and sees it to its end, whichever that is. Never throws. */
export async function send(call: Call): Promise<Seen> {
  const { url, key, leave, isSlow } = call;
  const body = call.body === null ? undefined : JSON.stringify(call.body);
  const sentMs = clockMs();
  const came: Came = { response: null, answeredMs: null, firstByteMs: null, text: "" };
  const { promise: ended, resolve: end } = Promise.withResolvers<Fate>();
  const outgoing = httpRequest(url, {
    method: body === undefined ? "GET" : "POST",
    agent: false, // a kept connection may be closed under a request: an error that says nothing
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && {
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
  const leaveAt = leave !== null && "afterBytes" in leave ? leave.afterBytes : Infinity;
  const read = async (response: IncomingMessage): Promise<Fate> => {
    Object.assign(came, { response, answeredMs: clockMs() });
    let pauses = 0;
    response.setEncoding("utf8");
    for await (const part of response) {
      came.firstByteMs ??= clockMs();
      came.text += String(part);
      if (came.text.length >= leaveAt) reset("left");
      if (isSlow && pauses++ < SLOW_PAUSES_MAX) await sleep(SLOW_PAUSE_MS);
    }
    return response.complete ? fateOfWhole(came) : "broken";
  };
  outgoing.on("error", () => end("broken"));
  outgoing.on("response", (response) => void read(response).then(end, () => end("broken")));
  const leaveMs = leave !== null && "afterMs" in leave ? leave.afterMs : PATIENCE_MS;
  const timers = [
    setTimeout(() => reset("stuck"), PATIENCE_MS),
    setTimeout(() => reset("left"), leaveMs),
  ];
  outgoing.end(body);
  const fate = await ended;
  for (const timer of timers) clearTimeout(timer);
  return { ...seenOf(came, fate), sentMs, endedMs: clockMs() };
}

function fateOfWhole({ response, text }: Came): Fate {
  const isStream = response?.headers["content-type"]?.startsWith("text/event-stream") === true;
  const last = text.endsWith("\n\n") ? text.split("\n\n").at(-2) : undefined;
  if (!isStream || last === "data: [DONE]") return "whole";
  return last?.startsWith('data: {"error":') === true ? "cut" : "mute";
}

function seenOf(came: Came, fate: Fate): Omit<Seen, "sentMs" | "endedMs"> {
  const { response, answeredMs, firstByteMs, text } = came;
  const header = (name: string): string | null => {
    const value = response?.headers[name];
    return typeof value === "string" ? value : null;
  };
  const status = response?.statusCode ?? null;
  const { type, code, message } = errorIn(status === 200 ? "" : text);
  const isLimit = status === 429 && type === "rate_limit_exceeded";
  const isOrganizationLimit = isLimit && (message ?? "").includes("for your organization");
  const isCounted = header("x-ratelimit-remaining-requests") !== null;
  return {
    answeredMs,
    firstByteMs,
    fate,
    received: text.length,
    status,
    id: header("x-request-id"),
    type,
    code,
    ...(fate === "whole" && status === 200
      ? receiptIn(text, header("x-cost-micro"))
      : { cost: null, usage: null }),
    retryAfter: header("retry-after"),
    isAdmitted: isCounted && (!isLimit || isOrganizationLimit),
    isOrganizationLimit,
  };
}

/** What an answer or the chunk of a stream that tells it says; embeddings have no output. */
function receiptIn(text: string, inHeader: string | null): Pick<Seen, "cost" | "usage"> {
  const cost = inHeader ?? /"cost_micro":(\d+)/.exec(text)?.[1] ?? null;
  const input = /"usage":\{[^}]*"prompt_tokens":(\d+)/.exec(text)?.[1];
  const output = /"usage":\{[^}]*"completion_tokens":(\d+)/.exec(text)?.[1] ?? "0";
  const usage = input === undefined ? null : { input: Number(input), output: Number(output) };
  return { cost: cost === null ? null : Number(cost), usage };
}

/** What a refusal says, null for what it does not: the client may have left in the midst of it. */
function errorIn(text: string): Record<"type" | "code" | "message", string | null> {
  let error: Record<string, unknown> = {};
  try {
    ({ error } = JSON.parse(text) as { error: Record<string, unknown> });
  } catch {
    // not whole
  }
  const said = (name: string): string | null => {
    const value = error?.[name];
    return typeof value === "string" && value !== "" ? value : null;
  };
  return { type: said("type"), code: said("code"), message: said("message") };
}
