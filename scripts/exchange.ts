import { request } from "node:http";
import type { Agent, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** The time or number of received bytes after which a client disconnects. */
export type DisconnectPoint = { readonly afterMs: number } | { readonly afterBytes: number };

export type Call = {
  readonly url: string;
  readonly key: string;
  /** JSON to POST. Null sends a GET. */
  readonly body: string | null;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The agent for persistent connections. By default, each request opens a connection. */
  readonly agent?: Agent;
  /** The client's timeout for the whole response. */
  readonly patienceMs: number;
  readonly leave?: DisconnectPoint | null;
  /** Pauses repeatedly while reading the response. */
  readonly isSlow?: boolean;
};

/** A request as its client observed it. Times are from `clockMs`. */
export type Exchange = {
  /**
   * `whole`: the response ended. `left`: the client disconnected. `stuck`: the client timed out.
   * `broken`: the connection failed.
   */
  readonly end: "whole" | "left" | "stuck" | "broken";
  readonly sentMs: number;
  /** Time when the headers arrived. The next field is the time when the body began. */
  readonly answeredMs: number | null;
  readonly firstByteMs: number | null;
  readonly endedMs: number;
  readonly status: number | null;
  readonly headers: IncomingHttpHeaders;
  /** The received body, one character per byte. */
  readonly text: string;
  /** The cause of a failed connection, or "". */
  readonly why: string;
};

const SLOW_PAUSE_MS = 150;
const SLOW_PAUSES_MAX = 20;
const LOOK_MS = 50;

/** Returns Unix ms with fractions. Never goes backward. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * Starts each item at its time, regardless of earlier ones, until all have started or `stop` is
 * aborted.
 */
export async function startOnTime<T extends { readonly atMs: number }>(
  plan: Iterable<T>,
  begin: (one: T) => unknown,
  { startedMs, stop }: { readonly startedMs: number; readonly stop?: AbortSignal },
): Promise<void> {
  const isStopped = (): boolean => stop?.aborted === true;
  for (const one of plan) {
    for (let leftMs = 1; leftMs > 0 && !isStopped();) {
      leftMs = startedMs + one.atMs - clockMs();
      if (leftMs > 0) await sleep(Math.min(leftMs, LOOK_MS));
    }
    if (isStopped()) return;
    begin(one);
  }
}

/** Sends one request and waits until it ends. Never throws. */
export async function exchange(call: Call): Promise<Exchange> {
  const { url, key, body, headers, agent = false, leave = null } = call;
  const sentMs = clockMs();
  let response: IncomingMessage | undefined;
  const came = { answeredMs: null as number | null, firstByteMs: null as number | null, text: "" };
  const { promise, resolve } = Promise.withResolvers<Pick<Exchange, "end" | "why">>();
  const outgoing = request(url, {
    method: body === null ? "GET" : "POST",
    agent,
    headers: {
      ...headers,
      authorization: `Bearer ${key}`,
      ...(body !== null && {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      }),
    },
  });
  const broken = (error?: Error): void => resolve({ end: "broken", why: error?.message ?? "" });
  /** Resets the TCP connection, like a crashed client. Only the first end counts. */
  const reset = (end: "left" | "stuck"): void => {
    resolve({ end, why: end });
    const { socket } = outgoing;
    if (socket === null || socket.connecting) outgoing.destroy();
    else socket.resetAndDestroy();
  };
  outgoing.on("error", broken);
  outgoing.on("response", (answer) => {
    response = answer;
    came.answeredMs = clockMs();
    let pauses = call.isSlow === true ? SLOW_PAUSES_MAX : 0;
    answer.setEncoding("latin1");
    answer.on("data", (part: string) => {
      came.firstByteMs ??= clockMs();
      came.text += part;
      if (leave !== null && "afterBytes" in leave && came.text.length >= leave.afterBytes) {
        reset("left");
      }
      if (pauses-- <= 0) return;
      answer.pause();
      setTimeout(() => answer.resume(), SLOW_PAUSE_MS);
    });
    answer.on("error", broken);
    answer.on("end", () => (answer.complete ? resolve({ end: "whole", why: "" }) : broken()));
    answer.on("close", () => broken());
  });
  const timers = [setTimeout(reset, call.patienceMs, "stuck")];
  if (leave !== null && "afterMs" in leave) timers.push(setTimeout(reset, leave.afterMs, "left"));
  outgoing.end(body ?? undefined);
  const ended = await promise;
  for (const timer of timers) clearTimeout(timer);
  const { statusCode: status = null, headers: given = {} } = response ?? {};
  return { ...ended, sentMs, ...came, endedMs: clockMs(), status, headers: given };
}
