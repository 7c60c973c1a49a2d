import { request as httpRequest } from "node:http";
import type { ClientRequest, IncomingMessage } from "node:http";
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
/** Unix ms with fractions: never steps back. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Sends one request and sees it to its end, whichever that is. Never throws. */
export async function send(call: Call): Promise<Seen> {
  const body = call.body === null ? null : JSON.stringify(call.body);
  const sentMs = clockMs();
  const outgoing = httpRequest(call.url, {
    method: body === null ? "GET" : "POST",
    agent: false, // a kept connection may be closed under a request: an error that says nothing
    headers: {
      authorization: `Bearer ${call.key}`,
      ...(body === null
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
    },
  });
  const ending = new Ending(outgoing);
  outgoing.on("error", () => ending.come("broken"));
  const patience = setTimeout(() => ending.leave("stuck"), PATIENCE_MS);
  const { leave } = call;
  const leaving =
    leave !== null && "afterMs" in leave
      ? setTimeout(() => ending.leave("left"), leave.afterMs)
      : undefined;
  const reader = new Reader(call, ending);
  outgoing.on("response", (response) => void reader.read(response));
  if (body === null) outgoing.end();
  else outgoing.end(body);
  const fate = await ending.fate;
  clearTimeout(patience);
  clearTimeout(leaving);
  return { ...reader.seen(fate), sentMs, endedMs: clockMs() };
}

/** How a request ends: by whatever comes first. */
class Ending {
  readonly fate: Promise<Fate>;
  isOver = false;
  readonly #resolve: (fate: Fate) => void;
  readonly #outgoing: ClientRequest;

  constructor(outgoing: ClientRequest) {
    const { promise, resolve } = Promise.withResolvers<Fate>();
    this.fate = promise;
    this.#resolve = resolve;
    this.#outgoing = outgoing;
  }

  come(fate: Fate): void {
    this.isOver = true;
    this.#resolve(fate);
  }

  /** As a client that dies: a TCP reset, not a goodbye. */
  leave(fate: Fate): void {
    if (this.isOver) return;
    this.come(fate);
    const { socket } = this.#outgoing;
    if (socket === null || socket.connecting) this.#outgoing.destroy();
    else socket.resetAndDestroy();
  }
}

class Reader {
  readonly #call: Call;
  readonly #ending: Ending;
  #response: IncomingMessage | null = null;
  #answeredMs: number | null = null;
  #firstByteMs: number | null = null;
  #text = "";

  constructor(call: Call, ending: Ending) {
    this.#call = call;
    this.#ending = ending;
  }

  async read(response: IncomingMessage): Promise<void> {
    this.#response = response;
    this.#answeredMs = clockMs();
    const { leave, isSlow } = this.#call;
    const leaveAt = leave !== null && "afterBytes" in leave ? leave.afterBytes : Infinity;
    let pauses = 0;
    response.setEncoding("utf8");
    try {
      for await (const part of response) {
        this.#firstByteMs ??= clockMs();
        this.#text += String(part);
        if (this.#text.length >= leaveAt) this.#ending.leave("left");
        if (this.#ending.isOver) return;
        if (isSlow && pauses++ < SLOW_PAUSES_MAX) await sleep(SLOW_PAUSE_MS);
      }
      this.#ending.come(response.complete ? this.#fateOfWhole() : "broken");
    } catch {
      this.#ending.come("broken");
    }
  }

  #fateOfWhole(): Fate {
    const isStream = this.#header("content-type")?.startsWith("text/event-stream") === true;
    const last = this.#text.endsWith("\n\n") ? this.#text.split("\n\n").at(-2) : undefined;
    if (!isStream || last === "data: [DONE]") return "whole";
    return last?.startsWith('data: {"error":') === true ? "cut" : "mute";
  }

  seen(fate: Fate): Omit<Seen, "sentMs" | "endedMs"> {
    const status = this.#response?.statusCode ?? null;
    const { type, code, message } = errorIn(status === 200 ? "" : this.#text);
    const isLimit = status === 429 && type === "rate_limit_exceeded";
    const isOrganizationLimit = isLimit && message.includes("for your organization");
    const isCounted = this.#header("x-ratelimit-remaining-requests") !== null;
    return {
      answeredMs: this.#answeredMs,
      firstByteMs: this.#firstByteMs,
      fate,
      received: this.#text.length,
      status,
      id: this.#header("x-request-id"),
      type: type || null,
      code: code || null,
      ...this.#receipt(fate === "whole" && status === 200),
      retryAfter: this.#header("retry-after"),
      isAdmitted: isCounted && (!isLimit || isOrganizationLimit),
      isOrganizationLimit,
    };
  }

  #receipt(isAnswer: boolean): Pick<Seen, "cost" | "usage"> {
    if (!isAnswer) return { cost: null, usage: null };
    const told = this.#header("x-cost-micro") ?? /"cost_micro":(\d+)/.exec(this.#text)?.[1] ?? null;
    return { cost: told === null ? null : Number(told), usage: usageIn(this.#text) };
  }

  #header(name: string): string | null {
    const value = this.#response?.headers[name];
    return typeof value === "string" ? value : null;
  }
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
    const { type, code, message } = error;
    return { type: textOf(type), code: textOf(code), message: textOf(message) };
  } catch {
    return { type: "", code: "", message: "" };
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
