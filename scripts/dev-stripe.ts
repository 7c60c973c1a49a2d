import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { readState, writeState } from "./dev-state.ts";
import { signedWebhook } from "../test/fakes/stripe/events.ts";
import type { Endpoint } from "../test/fakes/stripe/events.ts";
import { FakeStripe } from "../test/fakes/stripe/fake.ts";
import type { Snapshot } from "../test/fakes/stripe/fake.ts";
import type { StripeEvent } from "../test/fakes/stripe/objects.ts";
import { answerPage } from "../test/fakes/stripe/pages.ts";

const STATE = "stripe.json";
/** Waits before each retry of a webhook. */
const AGAIN_MS = [500, 2000, 8000, 30_000];

export type ServedStripe = {
  readonly url: string;
  /** The base URL of its pages. */
  readonly pages: string;
  readonly fake: FakeStripe;
  /** Sets the endpoints that receive events. */
  readonly sendTo: (endpoints: readonly Endpoint[]) => void;
  readonly close: () => void;
};

type ServeOptions = {
  /** The folder of its state. By default, it keeps none. */
  readonly directory?: string;
  readonly port?: number;
  readonly now?: () => number;
};

/**
 * Serves the payment provider's API and pages. The pages use `localhost` because the regions use
 * 127.0.0.1, so that browsers treat them as different sites.
 */
export async function serveStripe({
  directory,
  port = 0,
  now,
}: ServeOptions = {}): Promise<ServedStripe> {
  let endpoints: readonly Endpoint[] = [];
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const at = (server.address() as AddressInfo).port;
  const url = `http://127.0.0.1:${at}`;
  const pages = `http://localhost:${at}`;
  const fake = new FakeStripe({ now: now ?? Date.now, pages, sleep: (ms) => sleep(ms) });
  const kept = directory === undefined ? null : readState(directory, STATE);
  if (kept !== null) fake.restore(kept as Snapshot);
  fake.onEvent = (event) => {
    for (const endpoint of endpoints) void deliver(event, endpoint);
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const asked = await requestOf(request, pages);
      const isApi = (request.url ?? "").startsWith("/v1/");
      const given = await (isApi ? fake.handle(asked) : answerPage(fake, asked));
      if (directory !== undefined && asked.method !== "GET") {
        writeState(directory, STATE, fake.snapshot());
      }
      response.writeHead(given.status, Object.fromEntries(given.headers));
      response.end(Buffer.from(await given.arrayBuffer()));
    } catch {
      response.destroy(); // the requested fault: no response or half a response
    }
  };
  return {
    url,
    pages,
    fake,
    sendTo: (places) => {
      endpoints = places;
    },
    close: () => {
      endpoints = [];
      server.close();
      server.closeAllConnections();
    },
  };
}

async function requestOf(request: IncomingMessage, origin: string): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { method = "GET" } = request;
  return new Request(new URL(request.url ?? "/", origin), {
    method,
    headers: Object.entries(request.headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as [string, string]] : [],
    ),
    ...(method === "POST" && { body: Buffer.concat(chunks) }),
  });
}

/**
 * Sends a webhook, signed again each time, until the endpoint accepts it or the retries are used
 * up.
 */
async function deliver(event: StripeEvent, endpoint: Endpoint): Promise<void> {
  for (const pause of [0, ...AGAIN_MS]) {
    await sleep(pause, undefined, { ref: false });
    const request = await signedWebhook(event, endpoint, Math.floor(Date.now() / 1000));
    const isTaken = await fetch(request, { redirect: "manual" }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.ok;
      },
      () => false,
    );
    if (isTaken) return;
  }
}
