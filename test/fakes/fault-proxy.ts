import { once } from "node:events";
import { createServer, request as send } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { bytesOf, endToEndHeaders, replacementReply } from "./proxy-reply.ts";
import type { Reply } from "./proxy-reply.ts";
import { seeded } from "../../scripts/seeded.ts";

const HOST = "127.0.0.1";

const REQUEST_FAULTS = [
  /** No fault. */
  "pass",
  /** Accepts the request but neither forwards nor answers it. */
  "drop",
  /** Forwards the request after `delayMs`. */
  "delay",
  /** Forwards the request immediately, but delays the reply by `delayMs`. */
  "delay-reply",
  /** Forwards the request, sends half of the reply's body and keeps the connection open. */
  "half-open",
  /** Resets the connection without forwarding the request. */
  "reset-before",
  /** Forwards the request, then resets the connection. */
  "reset-after",
  /** Forwards the request but never replies on the open connection. */
  "lose-reply",
  /** Forwards the request twice in sequence, and returns the first reply. */
  "duplicate",
  /**
   * Forwards the request twice in sequence, and returns the second reply, as a proxy with retries
   * does.
   */
  "resend",
  /** Forwards the request after a later one, or after `reorderMaxMs`. */
  "reorder",
  /** Returns a 200 without JSON, without forwarding the request. */
  "garbage",
  /** Returns a 503 without forwarding the request. */
  "5xx",
  /** Returns a redirect to the target without forwarding the request. */
  "redirect",
] as const;
export type RequestFault = (typeof REQUEST_FAULTS)[number];

/**
 * The probability of each fault, from 0 to 1. The rest has no fault. The same seed draws the same
 * faults.
 */
type Mix = {
  readonly seed: number;
  readonly odds: Readonly<Partial<Record<RequestFault, number>>>;
};
/** Returns the fault of each request by its operation. */
export type ChooseFault = (operation: string, body: string) => RequestFault;
/** `refuse` rejects connections. */
export type Fault = RequestFault | "refuse" | Mix | ChooseFault;

type Counts = {
  received: number;
  /** Requests that reached the target. Duplicates count twice. */
  forwarded: number;
  /** Replies that were sent completely. */
  answered: number;
  /** Received requests by the last part of their path. */
  readonly operations: Record<string, number>;
  readonly drawn: Record<RequestFault, number>;
};

/**
 * An HTTP proxy in front of a server, on its own loopback port. It loses, repeats, delays and
 * breaks requests for tests. It keeps headers and bodies unchanged because of signatures, and sends
 * replies once they are complete.
 */
export class FaultProxy {
  readonly counts: Counts;
  /** The delay of `delay` and `delay-reply`. */
  delayMs = 100;
  /** Maximum wait of `reorder` for a later request. */
  reorderMaxMs = 300;
  readonly #server: Server;
  readonly #target: URL;
  #port = 0;
  #fault: Exclude<Fault, "refuse"> = "pass";
  #random: () => number = () => 1;
  #heldReplies: (() => void)[] = [];
  #underWay = 0;

  private constructor(target: string) {
    this.#target = new URL(target);
    const drawn = Object.fromEntries(REQUEST_FAULTS.map((fault) => [fault, 0]));
    this.counts = {
      received: 0,
      forwarded: 0,
      answered: 0,
      operations: {},
      drawn: drawn as Counts["drawn"],
    };
    this.#server = createServer((request, response) => {
      request.on("error", () => undefined);
      response.on("error", () => undefined);
      this.#underWay++;
      void this.#take(request, response)
        .catch(() => request.socket.destroy())
        .finally(() => this.#underWay--);
    });
  }

  static async start(target: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await proxy.#listen();
    return proxy;
  }

  /** The proxy's URL without a trailing slash. */
  get url(): string {
    return `http://${HOST}:${this.#port}`;
  }

  /** Number of requests that can still reach the target or get its reply. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Sets the fault. Running requests continue unless connections are rejected. */
  async set(fault: Fault): Promise<void> {
    if (fault === "refuse") {
      await this.stop();
      return;
    }
    this.#fault = fault;
    if (typeof fault === "object") this.#random = seeded(fault.seed);
    if (!this.#server.listening) await this.#listen();
  }

  /** Closes every connection and stops listening. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #listen(): Promise<void> {
    this.#server.listen(this.#port, HOST);
    await once(this.#server, "listening"); // throws if it fails
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bytesOf(request);
    const operation = request.url?.split("/").at(-1) ?? "";
    const fault = this.#draw(operation, body);
    this.counts.received++;
    this.counts.operations[operation] = (this.counts.operations[operation] ?? 0) + 1;
    this.counts.drawn[fault]++;
    if (fault === "drop") return;
    if (fault === "reset-before") {
      request.socket.resetAndDestroy();
      return;
    }
    const reply = replacementReply(fault, `${this.#target.origin}${request.url}`);
    if (reply !== null) {
      this.#answer(response, reply);
      return;
    }
    if (fault === "delay") await sleep(this.delayMs);
    if (fault === "reorder") await this.#laterOne();
    const first = await this.#forward(request, body);
    for (const release of this.#heldReplies.splice(0)) release();
    if (fault === "delay-reply") await sleep(this.delayMs);
    this.#reply(fault, await this.#again(fault, { request, body, first }), response);
  }

  /** Returns the reply to a repeated request, if there is one. */
  async #again(
    fault: RequestFault,
    { request, body, first }: { request: IncomingMessage; body: Buffer; first: Reply },
  ): Promise<Reply> {
    if (fault !== "duplicate" && fault !== "resend") return first;
    const second = await this.#forward(request, body);
    return fault === "resend" ? second : first;
  }

  #reply(fault: RequestFault, reply: Reply, response: ServerResponse): void {
    if (fault === "lose-reply") return;
    if (fault === "reset-after") {
      response.socket?.resetAndDestroy();
      return;
    }
    if (fault !== "half-open") {
      this.#answer(response, reply);
      return;
    }
    response.writeHead(reply.status, [...reply.headers, "content-length", `${reply.body.length}`]);
    response.write(reply.body.subarray(0, Math.floor(reply.body.length / 2)));
  }

  #answer(response: ServerResponse, { status, headers, body }: Reply): void {
    response.writeHead(status, [...headers, "content-length", String(body.length)]);
    response.end(body);
    this.counts.answered++;
  }

  #draw(operation: string, body: Buffer): RequestFault {
    if (typeof this.#fault === "string") return this.#fault;
    if (typeof this.#fault === "function") return this.#fault(operation, body.toString());
    let remaining = this.#random();
    for (const fault of REQUEST_FAULTS) {
      remaining -= this.#fault.odds[fault] ?? 0;
      if (remaining < 0) return fault;
    }
    return "pass";
  }

  async #laterOne(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#heldReplies.push(resolve);
    const waited = setTimeout(() => resolve(), this.reorderMaxMs);
    await promise;
    clearTimeout(waited);
  }

  #forward(request: IncomingMessage, body: Buffer): Promise<Reply> {
    this.counts.forwarded++;
    const { hostname, port } = this.#target;
    const headers = endToEndHeaders(request.rawHeaders);
    if (body.length > 0) headers.push("content-length", String(body.length));
    const options = { hostname, port, method: request.method, path: request.url, agent: false };
    return new Promise((resolve, reject) => {
      const sent = send({ ...options, headers, setHost: false }, (reply) => {
        const status = reply.statusCode ?? 502;
        const headersBack = endToEndHeaders(reply.rawHeaders);
        bytesOf(reply)
          .then((bytes): Reply => ({ status, headers: headersBack, body: bytes }))
          .then(resolve, reject);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}
