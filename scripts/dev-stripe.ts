import { setTimeout as sleep } from "node:timers/promises";
import { readState, writeState } from "./dev-state.ts";
import { serveRequests } from "./serve.ts";
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
  const server = await serveRequests(answer, { host: "127.0.0.1", port });
  const pages = `http://localhost:${server.port}`;
  const fake = new FakeStripe({ now: now ?? Date.now, pages, sleep: (ms) => sleep(ms) });
  const kept = directory === undefined ? null : readState(directory, STATE);
  if (kept !== null) fake.restore(kept as Snapshot);
  fake.onEvent = (event) => {
    for (const endpoint of endpoints) void deliver(event, endpoint);
  };
  async function answer(request: Request): Promise<Response> {
    const isApi = new URL(request.url).pathname.startsWith("/v1/");
    const given = await (isApi ? fake.handle(request) : answerPage(fake, request));
    if (directory !== undefined && request.method !== "GET") {
      writeState(directory, STATE, fake.snapshot());
    }
    return given;
  }
  return {
    url: `http://127.0.0.1:${server.port}`,
    pages,
    fake,
    sendTo: (places) => {
      endpoints = places;
    },
    close: () => {
      endpoints = [];
      server.close();
    },
  };
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
