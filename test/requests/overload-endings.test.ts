import * as fc from "fast-check";
import { beforeEach, expect, it, vi } from "vitest";
import { addKey, admin, openAccount } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { OverloadFixture, HELLO } from "./overload-fixture.ts";
import type { SentRequest } from "./overload-fixture.ts";
import { effortFor } from "../effort.ts";

const CASES = effortFor(2, 10);
const ENDINGS = 100 * CASES;
const LEAVES_EARLY = "client leaves early";
const LEAVES_STREAM = "client leaves the stream";
/**
 * Each uses the organization's only slot, so that one lost slot would reject all later requests.
 */
const BINDINGS = {
  ORGANIZATION_IN_FLIGHT_MAX: "1",
  DRAIN_S: "0",
  BODY_TIMEOUT_MS: "10",
  LOG_REQUESTS: "failures",
} as const;

let account: Account;
let dead: string;
let spent: string;
beforeEach(async () => {
  account = await openAccount({ credits: 1_000_000_000 });
  ({ key: dead } = await deadKey());
  ({ key: spent } = await openAccount({ credits: 0 }));
  return () => vi.restoreAllMocks();
});

async function deadKey() {
  const { key, keyId } = await addKey(account.orgId, account.memberId);
  const path = `/orgs/${account.orgId}/keys/${keyId}`;
  expect((await admin("DELETE", path)).status).toBe(200);
  return { key };
}

type How = (fixture: OverloadFixture, key: string) => SentRequest;

const model =
  (name: string, stream = false): How =>
  (_, key) => ({ key, body: { ...HELLO, model: `sandbox/${name}`, stream } });

/** Ways in which a request can end. */
const HOWS: Readonly<Record<string, How>> = {
  json: model("echo"),
  stream: model("echo", true),
  embeddings: (_, key) => {
    return { key, path: "/v1/embeddings", body: { model: "sandbox/embed", input: "a" } };
  },
  "upstream fails": model("status-500"),
  "cut stream": model("cut", true),
  "no such model": model("nobody"),
  "bad JSON": (_, key) => ({ key, body: "{" }),
  "revoked key": () => ({ key: dead }),
  "no credit": () => ({ key: spent }),
  "two Idempotency-Keys": (_, key) => ({ key, headers: { "idempotency-key": "a, b" } }),
  "body that breaks off": (_, key) => {
    return { key, body: bodyThat((to) => to.error(new Error("gone"))) };
  },
  "body that stays away": (_, key) => ({ key, body: bodyThat(() => new Promise(() => {})) }),
  bug: (fixture, key) => {
    fixture.failNext();
    return { key };
  },
  [LEAVES_EARLY]: model("echo"),
  [LEAVES_STREAM]: model("endless", true),
};
type Ending = { readonly how: string; readonly turns: number };

function bodyThat(
  pull: (to: ReadableStreamDefaultController<Uint8Array>) => Promise<void> | void,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({ pull });
}

const ending: fc.Arbitrary<Ending> = fc.record({
  how: fc.constantFrom(...Object.keys(HOWS)),
  turns: fc.nat(30),
});

it(`every slot is free again after ${ENDINGS} requests that end in every possible way`, async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(ending, { minLength: ENDINGS / CASES, maxLength: ENDINGS / CASES }),
      async (endings) => {
        const fixture = new OverloadFixture(BINDINGS);
        const keys = await freshKeys();
        for (const [i, one] of endings.entries()) {
          seen.add(one.how);
          await endsUnshed(fixture, one, keys[i % keys.length] ?? "");
        }
        const goOn = fixture.keepHolds();
        const held = fixture.untilHeld(1);
        const last = fixture.send({ key: keys[0] ?? "" });
        await held;
        expect(await fixture.status({ key: keys[0] ?? "" })).toBe(503);
        goOn();
        expect((await last.response).status).toBe(200);
        await last.end();
      },
    ),
    { numRuns: CASES },
  );
  expect(seen.size).toBe(Object.keys(HOWS).length);
});

/**
 * Returns several keys of the organization, because each is limited to 1,000 requests per minute.
 */
function freshKeys(): Promise<string[]> {
  const keys = Array.from({ length: 2 }, () => addKey(account.orgId, account.memberId));
  return Promise.all(keys.map(async (one) => (await one).key));
}

async function endsUnshed(
  fixture: OverloadFixture,
  { how, turns }: Ending,
  key: string,
): Promise<void> {
  const client = new AbortController();
  const request = fixture.send({
    signal: client.signal,
    ...(HOWS[how]?.(fixture, key) ?? { key }),
  });
  if (how === LEAVES_EARLY) {
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    client.abort();
  }
  const response = await request.response.catch(() => null);
  if (how === LEAVES_STREAM) await response?.body?.cancel();
  const text = response === null || response.bodyUsed ? "" : await response.text().catch(() => "");
  await request.end();
  expect({ how, text }).not.toMatchObject({
    text: expect.stringContaining('"overloaded"') as string,
  });
}
