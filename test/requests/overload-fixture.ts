import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { app } from "../../src/app.ts";
import { bindingsWith } from "../contract/client.ts";
import { contentLengthHeader } from "../fixtures/content-length.ts";

type Stub = { readonly [method: string]: (...args: readonly unknown[]) => Promise<unknown> };
type Namespace = { getByName(name: string): unknown };

/**
 * A request in progress. `response` resolves with the response, and `end` once no work of the
 * request continues.
 */
type RunningRequest = {
  readonly request: Request;
  readonly response: Promise<Response>;
  readonly end: () => Promise<void>;
};
export type SentRequest = {
  readonly key: string;
  /** Sent as JSON unless it is a stream or a string. */
  readonly body?: object | string | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly path?: string;
};

export const HELLO = {
  model: "sandbox/echo",
  messages: [{ role: "user", content: "one two three" }],
};

/** Calls that hold an amount. Admission with a hold of a cached key counts as `hold`. */
const HOLDS: readonly string[] = ["hold", "admitAndHold"];

/** A response that no object returns: a success without a value. */
function bug(): Promise<unknown> {
  return Promise.resolve({ ok: true });
}

/** A separate isolate of the Worker, whose holds a test can delay. Counts its calls to objects. */
export class OverloadFixture {
  /** Calls of objects by method. */
  readonly calls: Record<string, number> = {};
  readonly env: Env;
  #open: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;
  #hasBug = false;
  /** Resolved when this number of holds wait. */
  #waiting: { readonly count: number; readonly resolve: () => void } | null = null;

  constructor(bindings: Readonly<Record<string, unknown>>) {
    this.env = bindingsWith({
      KEY_REGISTER: this.#watched(env.KEY_REGISTER, ["whose"]),
      WALLET: this.#watched(env.WALLET, [...HOLDS, "admit", "settle", "void", "balance"]),
      REGION_OUTBOX: this.#watched(env.REGION_OUTBOX, ["enqueue"]),
      OVERLOAD_WAIT_MS: "0",
      ...bindings,
    });
  }

  send({
    key,
    body = HELLO,
    headers = {},
    signal,
    path = "/v1/chat/completions",
  }: SentRequest): RunningRequest {
    const context = createExecutionContext();
    const isRaw = typeof body === "string" || body instanceof ReadableStream;
    const sent = isRaw ? body : JSON.stringify(body);
    const type = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = new Request(`https://eu.test${path}`, {
      method: "POST",
      headers: { ...type, ...contentLengthHeader(sent), ...headers },
      body: sent,
      ...(signal !== undefined && { signal }),
    });
    const response = Promise.resolve(app.fetch(request, this.env, context));
    return { request, response, end: () => waitOnExecutionContext(context) };
  }

  /** Returns the status of a request after reading the whole response. */
  async status(options: SentRequest): Promise<number> {
    const request = this.send(options);
    const response = await request.response;
    await response.text();
    await request.end();
    return response.status;
  }

  /** Delays holds from now on, until the returned function is called. */
  keepHolds(): () => void {
    this.#open = new Promise((resolve) => {
      this.#release = resolve;
    });
    return () => this.#release();
  }

  /** Makes the next hold fail because of a bug. */
  failNext(): void {
    this.#hasBug = true;
  }

  /** Waits until `hold` was called this number of times more. */
  untilHeld(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting = { count: (this.calls["hold"] ?? 0) + count, resolve };
    return promise;
  }

  #watched(namespace: Namespace, methods: readonly string[]) {
    return {
      getByName: (name: string): Stub => {
        if (this.#hasBug && methods.includes("hold")) {
          this.#hasBug = false;
          return { hold: bug, admitAndHold: bug };
        }
        const stub = namespace.getByName(name) as Stub;
        return Object.fromEntries(methods.map((method) => [method, this.#counted(stub, method)]));
      },
    };
  }

  #counted(stub: Stub, method: string): Stub[string] {
    const isHold = HOLDS.includes(method);
    const name = isHold ? "hold" : method;
    return async (...args) => {
      this.calls[name] = (this.calls[name] ?? 0) + 1;
      if (isHold) {
        if (this.calls[name] === this.#waiting?.count) this.#waiting.resolve();
        await this.#open;
      }
      return stub[method]?.(...args);
    };
  }
}
