import { env } from "cloudflare:workers";
import { beforeEach, expect, it, vi } from "vitest";
import { configOf } from "../../src/shared/config/config.ts";
import {
  authorizeAtHome,
  authorizeRequestToJson,
  parseAuthorizeRequest,
} from "../../src/models/requests/authorize.ts";
import type { PeerHoldRequest } from "../../src/models/requests/authorize.ts";
import { micros } from "../../src/shared/money.ts";

const HOLD = {
  id: "req_000000000000000000000000",
  least: micros(10),
  sure: micros(12),
  most: micros(20),
  hasCap: true,
  tokens: { prompt: 1, least: 2, most: 2 },
  model: { sent: "smart", id: "acme/one" },
  externalId: null,
  idempotency: null,
};
let answer: unknown;
/** The first attempts, whose responses are lost. */
let lost: number;
let bodies: unknown[];

beforeEach(() => {
  bodies = [];
  lost = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    if (!request.url.endsWith("/authorize")) throw new Error("no message of this test");
    bodies.push(await request.json());
    if (lost-- > 0) throw new Error("Network connection lost.");
    return Response.json(answer);
  });
});

function sendAuthorize(hold: typeof HOLD | null) {
  const parsed = configOf(env);
  if (!parsed.ok) throw new Error("the tests' bindings are not valid");
  const [home] = parsed.config.peers;
  const at = { requestId: HOLD.id, now: () => Date.now(), spentMs: 0 };
  return authorizeAtHome(home, { keyHash: "ab", hold }, at);
}

const AWAY = { unanswered: true, failure: { kind: "home_region_unreachable" } };

it.each([10, 15, 20])(
  "a request in another region accepts a granted amount of %i between the minimum 10 and the maximum 20",
  async (granted) => {
    answer = { ok: true, granted };
    expect(await sendAuthorize(HOLD)).toEqual({
      unanswered: false,
      result: { ok: true, value: { granted } },
    });
    expect(bodies).toMatchObject([{ key_hash: "ab", hold: { least: 10, most: 20, user: null } }]);
  },
);

it.each([
  { ok: true, granted: 9 },
  { ok: true, granted: 21 },
  { ok: true, granted: 0 },
  { ok: true, granted: 15.5 },
  { ok: true },
  { ok: false },
  { ok: false, failure: { kind: "internal" } },
  { ok: false, failure: { kind: "balance_too_low" } },
  { granted: 15 },
  [],
  null,
])(
  "a request in another region treats the response %j as lost, so that the outcome of the hold is unknown",
  async (result) => {
    answer = result;
    expect(await sendAuthorize(HOLD)).toEqual(AWAY);
  },
);

it("a request in another region returns the home region's failure, and the hold's outcome is unknown", async () => {
  for (const kind of ["storage_unavailable", "overloaded"]) {
    answer = { ok: false, failure: { kind } };
    expect(await sendAuthorize(HOLD)).toEqual({ unanswered: true, failure: { kind } });
  }
});

it("a request without a hold gets no grant in another region, and an error if the key is revoked", async () => {
  answer = { ok: true, granted: 0 };
  expect(await sendAuthorize(null)).toMatchObject({ result: { ok: true } });
  answer = { ok: false, failure: { kind: "invalid_api_key" } };
  expect(await sendAuthorize(null)).toEqual({ unanswered: false, result: answer });
});

it.each(["invalid_api_key", "organization_suspended"])(
  "the outcome of a hold is unknown if the retry of a lost call returns %s",
  async (kind) => {
    answer = { ok: false, failure: { kind } };
    const refused = { unanswered: false, result: answer };
    expect(await sendAuthorize(HOLD)).toEqual(refused);
    lost = 1;
    expect(await sendAuthorize(HOLD)).toEqual({ unanswered: true, failure: { kind } });
    lost = 1;
    expect(await sendAuthorize(null)).toEqual(refused);
  },
);

it("the outcome of a hold is unknown if the first call was lost and the home region rejects the retry", async () => {
  const failure = { kind: "organization_suspended" };
  answer = { ok: false, failure, may_hold: true };
  expect(await sendAuthorize(HOLD)).toEqual({ unanswered: true, failure });
});

it("a hold request from another region keeps every field", () => {
  const [sent, model, provider, region] = ["smart", "acme/one", "acme", "eu"];
  const { least, sure, most } = HOLD;
  const hold: Required<PeerHoldRequest> = {
    ...HOLD,
    externalId: "ann",
    idempotency: { name: "n", body: "b" },
    priceList: "gold",
    affinity: "a",
    candidates: [{ sent, model, provider, region, least, sure, most, tokens: HOLD.tokens }],
  };
  const body: unknown = JSON.parse(
    JSON.stringify(authorizeRequestToJson({ keyHash: "a".repeat(64), hold })),
  );
  expect(parseAuthorizeRequest(body)?.hold).toEqual(hold);
});
