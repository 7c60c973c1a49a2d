import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { mintKey } from "../../src/accounts/keys/api-key.ts";
import type { KeyAdmitter } from "../../src/accounts/keys/authenticate.ts";
import { KnownCallers } from "../../src/accounts/keys/authenticate.ts";
import { admitting, authenticateBy, keySecrets, makeKey } from "./key-fixture.ts";

function authenticate(
  authorization: string | null,
  options: Partial<KeyAdmitter> = {},
): ReturnType<typeof authenticateBy> {
  return authenticateBy({
    authorization,
    keySecrets: keySecrets(),
    ...admitting(),
    ...options,
  });
}

type Failing<Stub> = { readonly made: () => number; readonly stub: (name: string) => Stub };

/**
 * Returns stubs whose calls throw these errors in order, then real ones. Counts the created stubs.
 */
function failing<Stub>(errors: readonly object[], real: (name: string) => Stub): Failing<Stub> {
  let made = 0;
  const stub = (name: string): Stub => {
    const error = errors[made];
    made++;
    if (error === undefined) return real(name);
    const call = (): Promise<never> => Promise.reject(Object.assign(new Error("lost"), error));
    return { whose: call, admit: call } as Stub;
  };
  return { made: () => made, stub };
}

const registerOf = (hash: string): ReturnType<KeyAdmitter["register"]> =>
  env.KEY_REGISTER.getByName(hash);
const { wallet: walletOf } = admitting();
/** A key object in another region, with this region's database. */
const registerAway = (hash: string): ReturnType<KeyAdmitter["register"]> => {
  const register = env.KEY_REGISTER.getByName(hash);
  return { whose: () => register.whose(), admit: () => register.admit() };
};

it("authentication returns the caller's key, organization, member and remaining requests", async () => {
  const { key, booked } = await makeKey({ rpmLimit: 7, scope: "global" });
  expect(await authenticate(`bearer ${key}`)).toEqual({
    ok: true,
    value: {
      caller: {
        keyId: booked.keyId,
        keyHash: booked.keyHash,
        orgId: booked.orgId,
        memberId: booked.memberId,
        scope: "global",
        home: "eu",
      },
      rate: { limit: 7, remaining: 6, resetMs: 60_000 },
    },
  });
});

it("authentication returns the same 401 for a missing, malformed, older, unknown or revoked key", async () => {
  const { key: unknown } = await mintKey({ home: "eu", scope: "regional", secrets: keySecrets() });
  const { key: revoked, booked } = await makeKey();
  await env.WALLET.getByName(booked.orgId).revokeKey(booked.keyHash, 1);
  const { key: buried, booked: dead } = await makeKey();
  await env.KEY_REGISTER.getByName(dead.keyHash).revoke(1);
  const { key } = await makeKey();
  const headers = [
    null,
    "",
    `Basic ${key}`,
    `Bearer  ${key}`,
    `Bearer ${key}, Bearer ${key}`,
    `Bearer ${key} x`,
    "Bearer rk-eu-abcdef",
    `Bearer ${unknown}`,
    `Bearer ${revoked}`,
    `Bearer ${buried}`,
  ];
  for (const header of headers) {
    const answer = await authenticate(header);
    expect({ header, answer }).toMatchObject({
      header,
      answer: { ok: false, failure: { kind: "invalid_api_key" } },
    });
  }
});

it("authentication rejects another region's key by its prefix, without an object call", async () => {
  const registers = failing([], registerOf);
  const wallets = failing([], walletOf);
  const regional = await makeKey();
  const objects = { register: registers.stub, wallet: wallets.stub };
  expect(await authenticate(`Bearer ${regional.key}`, { region: "us", ...objects })).toEqual({
    ok: false,
    failure: { kind: "region_mismatch", home: "eu" },
  });
  expect([registers.made(), wallets.made()]).toEqual([0, 0]);
});

it("authentication looks up a key's owner once, then calls only its wallet", async () => {
  const registers = failing([], registerOf);
  const wallets = failing([], walletOf);
  const { key, booked } = await makeKey({ rpmLimit: 3 });
  const objects = { register: registers.stub, wallet: wallets.stub, callers: new KnownCallers() };
  const left: number[] = [];
  for (let i = 0; i < 3; i++) {
    const answer = await authenticate(`Bearer ${key}`, objects);
    left.push(answer.ok ? answer.value.rate.remaining : -1);
  }
  expect(left).toEqual([2, 1, 0]);
  expect([registers.made(), wallets.made()]).toEqual([1, 3]);
  await env.WALLET.getByName(booked.orgId).revokeKey(booked.keyHash, 1);
  expect(await authenticate(`Bearer ${key}`, objects)).toMatchObject({
    failure: { kind: "invalid_api_key" },
  });
});

const FAULTS = [
  ["a retryable error is retried with a new stub", [{ retryable: true }], 2, "admitted"],
  [
    "a second retryable error is not retried",
    [{ retryable: true }, { retryable: true }],
    2,
    "storage_unavailable",
  ],
  [
    "an overloaded object is not called again",
    [{ overloaded: true, retryable: true }],
    1,
    "overloaded",
  ],
  [
    "an overloaded object at the retry is reported as overloaded",
    [{ retryable: true }, { overloaded: true }],
    2,
    "overloaded",
  ],
  ["any other error returns 503, never 401", [{}], 1, "storage_unavailable"],
] as const;

it.each(FAULTS)(
  "authentication returns an error if the key's object fails at the first use: %s",
  async (_name, errors, stubs, outcome) => {
    const { key } = await makeKey();
    const { made, stub } = failing(errors, registerOf);
    const answer = await authenticate(`Bearer ${key}`, { register: stub });
    expect(answer.ok ? "admitted" : answer.failure.kind).toBe(outcome);
    expect(made()).toBe(stubs);
  },
);

it.each(FAULTS)(
  "authentication returns an error if the wallet fails: %s",
  async (_name, errors, stubs, outcome) => {
    const { key } = await makeKey();
    const { made, stub } = failing(errors, walletOf);
    const answer = await authenticate(`Bearer ${key}`, { wallet: stub });
    expect(answer.ok ? "admitted" : answer.failure.kind).toBe(outcome);
    expect(made()).toBe(stubs);
  },
);

it.each(FAULTS)(
  "authentication returns an error if the key's object in another region fails: %s",
  async (_name, errors, stubs, outcome) => {
    const { key } = await makeKey({ scope: "global" });
    const { made, stub } = failing(errors, registerAway);
    const answer = await authenticate(`Bearer ${key}`, { region: "us", register: stub });
    expect(answer.ok ? "admitted" : answer.failure.kind).toBe(outcome);
    expect(made()).toBe(stubs);
  },
);
