import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { mintKey } from "../../src/keys/api-key.ts";
import type { Limiter } from "../../src/keys/authenticate.ts";
import type { Region } from "../../src/lib/caller.ts";
import { authenticateBy, keySecrets, makeKey } from "./key-fixture.ts";

beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

function authenticate(
  authorization: string | null,
  options: { region?: Region; limiter?: (hash: string) => Limiter } = {},
): ReturnType<typeof authenticateBy> {
  return authenticateBy({
    authorization,
    keySecrets: keySecrets(),
    region: options.region ?? "eu",
    limiter: options.limiter ?? ((hash) => env.KEY_LIMITER.getByName(hash)),
  });
}

/** A limiter that throws these errors one after the other, then admits; counts how often it was made. */
function failing(errors: object[]): { made: () => number; limiter: (hash: string) => Limiter } {
  let made = 0;
  const limiter = (hash: string): Limiter => {
    const error = errors[made];
    made++;
    return error === undefined
      ? env.KEY_LIMITER.getByName(hash)
      : { admit: () => Promise.reject(Object.assign(new Error("lost"), error)) };
  };
  return { made: () => made, limiter };
}

it("an admitted caller is told apart by key, organisation and member, with what is left", async () => {
  const { key, row } = await makeKey({ rpmLimit: 7, scope: "global" });
  expect(await authenticate(`bearer ${key}`)).toEqual({
    ok: true,
    value: {
      caller: {
        keyId: row.id,
        keyHash: row.hash,
        orgId: row.org_id,
        memberId: row.member_id,
        scope: "global",
        home: "eu",
      },
      rate: { limit: 7, remaining: 6, resetMs: 60_000 },
    },
  });
});

it("a missing, malformed, legacy, unknown or revoked key is the same 401", async () => {
  const { key: unknown } = await mintKey({ home: "eu", scope: "regional", secrets: keySecrets() });
  const { key: revoked, row } = await makeKey();
  await env.KEY_LIMITER.getByName(row.hash).revoke(1);
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
  ];
  for (const header of headers) {
    // oxlint-disable-next-line no-await-in-loop -- one header after the other, to see which fails
    const answer = await authenticate(header);
    expect({ header, answer }).toEqual({
      header,
      answer: { ok: false, failure: { kind: "invalid_api_key" } },
    });
  }
});

it("a regional key of the other region is answered by its prefix alone, without a limiter", async () => {
  const asked = failing([]);
  const regional = await makeKey();
  expect(
    await authenticate(`Bearer ${regional.key}`, { region: "us", limiter: asked.limiter }),
  ).toEqual({ ok: false, failure: { kind: "region_mismatch", home: "eu" } });
  expect(asked.made()).toBe(0);
});

it.each([
  ["one retryable error is retried on a fresh stub", [{ retryable: true }], 2, "admitted"],
  ["two are not", [{ retryable: true }, { retryable: true }], 2, "storage_unavailable"],
  [
    "an overloaded limiter is not asked again",
    [{ overloaded: true, retryable: true }],
    1,
    "overloaded",
  ],
  [
    "an overloaded one on the retry says so",
    [{ retryable: true }, { overloaded: true }],
    2,
    "overloaded",
  ],
  ["any other error is 503, never 401", [{}], 1, "storage_unavailable"],
])("%s", async (_name, errors, stubs, outcome) => {
  const { key } = await makeKey();
  const { made, limiter } = failing(errors);
  const answer = await authenticate(`Bearer ${key}`, { limiter });
  expect(answer.ok ? "admitted" : answer.failure.kind).toBe(outcome);
  expect(made()).toBe(stubs);
});
