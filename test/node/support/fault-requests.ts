import type { MockScript, MockProvider } from "../../fixtures/openai-mock.ts";
import { scenarioOf, startMockProvider } from "../../fixtures/openai-mock.ts";
import { chunkOf, DONE, FINISH, usageChunk } from "../../fixtures/openai-replies.ts";
import { REQUEST_STEPS } from "../../fixtures/fault-matrix.ts";
import type { ExpectedOutcome, RequestStep } from "../../fixtures/fault-matrix.ts";
import { answerOf } from "./account.ts";
import type { Account } from "./account.ts";
import { openRemoteAccount } from "./peer-money.ts";
import { callAt } from "./peer-traffic.ts";
import { openRaw, requestBytes } from "./raw-request.ts";
import type { RawConnection, RawRequest } from "./raw-request.ts";
import { HELLO, stream } from "./stream-scripts.ts";
import type { FaultyRegions } from "./two-regions.ts";
import { startStream } from "./upstream-fixture.ts";

const SECRET = "upstream-key".padEnd(40, "u");
/** Bytes at the end of a request that are kept back before HOLD. */
const KEPT_BACK = 5;

/** A provider that stops each model at its step until the test opens its gate. */
export class GatedUpstream {
  readonly #mock: MockProvider;
  readonly #gates = new Map<string, PromiseWithResolvers<void>>();

  private constructor(mock: MockProvider) {
    this.#mock = mock;
    mock.script((request, response) => this.#script(request, response));
  }

  static async start(): Promise<GatedUpstream> {
    return new GatedUpstream(await startMockProvider());
  }

  /** Returns bindings for the region that calls it. */
  bindings(): Record<string, string> {
    const price = { input: 1_000_000, output: 2_000_000 };
    const models = Object.keys(PARTS).map((id) => ({
      id,
      kind: "chat",
      context: 128_000,
      max_output: 4096,
      price,
      routes: [{ provider: "up", upstream_id: id }],
    }));
    const provider = { id: "up", base_url: this.#mock.url, secret: "UPSTREAM_KEY" };
    return {
      UPSTREAM_KEY: SECRET,
      PROVIDERS: JSON.stringify([{ ...provider, profile: "generic", regions: ["us"] }]),
      MODELS: JSON.stringify(models),
    };
  }

  requestCount(model: string): number {
    return this.#mock.requests.filter((request) => scenarioOf(request) === model).length;
  }

  close(model: string): void {
    this.#gates.set(model, Promise.withResolvers());
  }

  open(model: string): void {
    this.#gates.get(model)?.resolve();
  }

  stop(): Promise<void> {
    return this.#mock.close();
  }

  readonly #script: MockScript = async (request, response) => {
    const model = scenarioOf(request);
    const [before, after] = PARTS[model] ?? [[], []];
    const gate = this.#gates.get(model)?.promise;
    if (before.length > 0) startStream(response).write(stream(...before));
    await gate;
    if (before.length === 0) startStream(response);
    response.end(stream(...after));
  };
}

type Parts = readonly (string | object)[];
const SEEN = chunkOf({ content: " seen" });
/** The chunks of each model before and after its gate. */
const PARTS: Readonly<Record<string, readonly [Parts, Parts]>> = {
  good: [[], [...HELLO, FINISH, usageChunk(), DONE]],
  "first-byte": [[], [...HELLO, FINISH, usageChunk(), DONE]],
  "mid-stream": [HELLO, [FINISH, usageChunk(), DONE]],
  "usage-seen": [
    [...HELLO, usageChunk(), SEEN],
    [FINISH, DONE],
  ],
  "ack-lost": [HELLO, [FINISH, usageChunk(), DONE]],
};
const MODELS: Readonly<Record<RequestStep, string>> = {
  "before the hold": "good",
  "hold sent, no response yet": "good",
  "held, client disconnected before the provider call": "good",
  "provider called, before the first byte": "first-byte",
  "mid-stream": "mid-stream",
  "usage received": "usage-seen",
  "settlement sent, confirmation lost": "ack-lost",
};

/** A request that was stopped at a step. */
type Flight = {
  readonly account: Account;
  readonly connection: RawConnection;
  /** The bytes that it must still send. */
  readonly rest: Buffer;
};
export type Flights = Readonly<Record<RequestStep, Flight>>;

/**
 * Starts a request at every step, each of its own organization. Starts those first that wouldn't
 * stay at their step.
 */
export async function startFlights(
  regions: FaultyRegions,
  upstream: GatedUpstream,
): Promise<Flights> {
  for (const model of Object.keys(PARTS)) if (model !== "good") upstream.close(model);
  const payers = await Promise.all(REQUEST_STEPS.map(() => knownPayer(regions)));
  const begin = async (step: RequestStep): Promise<Flight> => {
    const account = payers.pop();
    if (account === undefined) throw new Error("more steps than organizations");
    return send(regions, account, step);
  };
  const requestsBefore = upstream.requestCount("first-byte");
  const early = await begin("before the hold");
  const dispatched = await begin("provider called, before the first byte");
  await until(() => upstream.requestCount("first-byte") > requestsBefore);
  const [middle, usage, settled] = [
    await begin("mid-stream"),
    await begin("usage received"),
    await begin("settlement sent, confirmation lost"),
  ];
  await Promise.all([seen(middle, "Hello"), seen(usage, " seen"), seen(settled, "Hello")]);

  const { toEu } = regions;
  let { forwarded } = toEu.counts;
  await toEu.set("reset-after");
  upstream.open("ack-lost");
  await seen(settled, "[DONE]");
  await until(() => toEu.counts.forwarded > forwarded);

  await toEu.set("lose-reply");
  ({ forwarded } = toEu.counts);
  const unanswered = await begin("hold sent, no response yet");
  const disconnected = await begin("held, client disconnected before the provider call");
  await until(() => toEu.counts.forwarded >= forwarded + 2);
  await disconnected.connection.reset();
  return {
    "before the hold": early,
    "hold sent, no response yet": unanswered,
    "held, client disconnected before the provider call": disconnected,
    "provider called, before the first byte": dispatched,
    "mid-stream": middle,
    "usage received": usage,
    "settlement sent, confirmation lost": settled,
  };
}

/** Continues every request: sends the rest of the partial one and opens the gates. */
export async function continueFlights(flights: Flights, upstream: GatedUpstream): Promise<void> {
  const { connection, rest } = flights["before the hold"];
  if (!connection.socket.destroyed) connection.socket.write(rest);
  for (const model of Object.keys(PARTS)) upstream.open(model);
  const disconnected = flights["held, client disconnected before the provider call"];
  await Promise.all(
    Object.values(flights)
      .filter((flight) => flight !== disconnected)
      .map((flight: Flight) => flight.connection.readUntil(isEnded)),
  );
}

/** Returns the client's response and its reported cost. */
export function resultOf({ connection }: Flight): {
  answer: ExpectedOutcome["answer"];
  cost: number | null;
} {
  if (!isEnded(connection.received())) return { answer: "nothing", cost: null };
  const { status, body } = answerOf(connection);
  const cost = /"cost_micro":(\d+)/.exec(body)?.[1];
  if (status === 503) return { answer: "503", cost: null };
  if (status !== 200 || cost === undefined) throw new Error(`${status} ${body}`);
  return { answer: "whole", cost: Number(cost) };
}

function isEnded(received: Buffer): boolean {
  return received.includes("data: [DONE]\n\n") || received.includes('"error"');
}

/**
 * Creates an organization whose key the US has cached, so that a request only calls its home region
 * for a hold.
 */
async function knownPayer(regions: FaultyRegions): Promise<Account> {
  const account = await openRemoteAccount(regions);
  const response = await callAt(regions.us, account, "/models");
  if (response.status !== 200) throw new Error(`the US answered ${response.status}`);
  await response.body?.cancel();
  return account;
}

async function send(regions: FaultyRegions, account: Account, step: RequestStep): Promise<Flight> {
  const request: RawRequest = {
    url: `${regions.us.baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${account.key}` },
    body: JSON.stringify({
      model: MODELS[step],
      messages: [{ role: "user", content: "Say it" }],
      user: "ann",
      max_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
    }),
  };
  const bytes = requestBytes(request);
  const sendBytes = bytes.length - (step === "before the hold" ? KEPT_BACK : 0);
  const connection = await openRaw({ ...request, sendBytes });
  return { account, connection, rest: bytes.subarray(sendBytes) };
}

async function seen({ connection }: Flight, text: string): Promise<void> {
  const isThere = await connection.readUntil((received) => received.includes(text));
  if (!isThere) throw new Error(`no ${text} in ${connection.received().toString()}`);
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 100_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error("it never came to that");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
