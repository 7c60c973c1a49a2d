import { createExecutionContext } from "cloudflare:test";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { mintKey } from "../../src/accounts/keys/api-key.ts";
import { countedBindings } from "../contract/counted-bindings.ts";
import { keySecrets } from "../keys/key-fixture.ts";
import { silenceLog } from "./send-request.ts";
import { faultOf } from "./error-table.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { PIECES } from "./hostile.ts";
import { at } from "./mutate.ts";

/** Valid keys that were never issued: regional and global, of both home regions. */
const minted: string[] = [];
beforeAll(async () => {
  silenceLog();
  const secrets = keySecrets();
  for (const home of ["eu", "us"] as const) {
    for (const scope of ["regional", "global"] as const) {
      minted.push((await mintKey({ home, scope, secrets })).key);
    }
  }
});
afterAll(() => {
  vi.restoreAllMocks();
});

const PREFIXES = [
  "svc_sk_eu_live_",
  "svc_sk_us_live_",
  "svc_sk_gbl_eu_live_",
  "svc_sk_gbl_us_live_",
  "svc_sk_eu_test_",
  "SVC_SK_EU_LIVE_",
  "rk-eu-",
  "",
];
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ASCII = PIECES.filter((piece) => /^[!-~ ]*$/.test(piece));
/**
 * Changes of a key: another character, fewer or more, two swapped, another prefix, or an inserted
 * text.
 */
const KINDS: readonly ((key: string, place: number, pick: number) => string)[] = [
  (key, place, pick) => key.slice(0, place) + at(BASE62.split(""), pick) + key.slice(place + 1),
  (key, place) => key.slice(0, place) + key.slice(place + 1),
  (key, place, pick) => key.slice(0, place) + at(BASE62.split(""), pick) + key.slice(place),
  (key, place) =>
    key.slice(0, place) + (key[place + 1] ?? "") + (key[place] ?? "") + key.slice(place + 2),
  (key, _, pick) => at(PREFIXES, pick) + key.slice(key.lastIndexOf("_") + 1),
  (key, place, pick) => key.slice(0, place) + at(ASCII, pick) + key.slice(place),
  (key, place) => key.slice(0, place),
  (key, place) => key.slice(0, place) + (key[place] ?? "").toUpperCase() + key.slice(place + 1),
  (key, place, pick) =>
    key.slice(0, -8) + at(minted, pick).slice(-8) + key.slice(key.length + place),
];
const edit = fc.record({
  kind: fc.nat(KINDS.length - 1),
  place: fc.nat(58),
  pick: fc.nat(1000),
});
const forged = fc.record({
  key: fc.nat(3),
  edits: fc.oneof(
    { weight: 40, arbitrary: fc.array(edit, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(edit, { maxLength: 0 }) },
  ),
  path: fc.constantFrom("/v1/models", "/v1/balance", "/v1/users/a", "/v1/keys", "/v1/nothing"),
});

type Forged = typeof forged extends fc.Arbitrary<infer T> ? T : never;

const counted = countedBindings();
const context = createExecutionContext();

/**
 * Checks the response for a changed key. A valid key of this region is unknown, so its object is
 * called.
 */
async function isRefused({ key, edits, path }: Forged): Promise<CheckResult> {
  const sent = edits.reduce(
    (text, { kind, place, pick }) => at(KINDS, kind)(text, place, pick),
    at(minted, key),
  );
  const headers = { authorization: `Bearer ${sent}` };
  [counted.objects, counted.statements] = [0, 0];
  const request = new Request(`https://eu.test${path}`, { headers });
  const response = await app.fetch(request, counted.bindings, context);
  const fault = faultOf(response.status, response.headers, await response.text());
  mustHold(fault === null, String(fault));
  const isOurs = minted.includes(sent.trim());
  const isAway = isOurs && sent.startsWith("svc_sk_us_");
  if (isOurs && !isAway) return "accepted";
  mustEqual(response.status, isAway ? 403 : 401, "another status");
  const { objects, statements } = counted;
  mustEqual({ objects, statements }, { objects: 0, statements: 0 }, "it cost something");
  return "refused";
}

describe("a key with a changed character", () => {
  it(
    `gets a 401 without calling an object or querying the database, for ${runsOf("keys")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: forged, show: JSON.stringify, check: isRefused, least: 1 };
      expect(await findFaults("keys", checking)).toBe("");
    },
  );
});
