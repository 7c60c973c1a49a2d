import * as fc from "fast-check";
import { expect, it } from "vitest";
import { idFloor, mintId, mintedAt } from "../src/lib/id.ts";
import { micros, microsOfDollars } from "../src/lib/money.ts";
import { parseConfig } from "../src/config.ts";

it("an id carries its minting time and sorts by it", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 41), fc.nat(2 ** 41), (a, b) => {
      const [one, two] = [mintId("req_", a), mintId("req_", b)];
      expect(mintedAt(one, "req_")).toBe(a);
      expect(a < b ? one < two : true).toBe(true);
      expect(idFloor("req_", a) <= one).toBe(true);
    }),
  );
});

it("dollars are exact to the micro or refused", () => {
  expect(
    [0.1, 8.2, 1.005, 1e9, 0, 0.000001].map((dollars) => Number(microsOfDollars(dollars))),
  ).toEqual([100_000, 8_200_000, 1_005_000, 1e15, 0, 1]);
  for (const dollars of [0.0000001, 1.0000005, -1, Number.NaN, 1e308, Infinity, 1e9 + 1]) {
    expect(microsOfDollars(dollars)).toBeNull();
  }
  fc.assert(
    fc.property(fc.nat(2 ** 40), (whole) => microsOfDollars(whole / 1e6) === micros(whole)),
  );
});

it("a missing, short or malformed binding is named, its value never", () => {
  const parsed = parseConfig({ REGION: "eu", KEY_SECRETS: "a:short", ADMIN_TOKEN: "hunter2" });
  expect(parsed.ok).toBe(false);
  if (parsed.ok) return;
  expect(parsed.problems.map((problem) => problem.variable).toSorted()).toEqual([
    "ADMIN_TOKEN",
    "KEY_SECRETS",
  ]);
  expect(JSON.stringify(parsed)).not.toContain("hunter2");
});

it("a malformed JSON variable says which field is wrong and what it must be", () => {
  const parsed = parseConfig({
    REGION: "eu",
    KEY_SECRETS: `a:${"k".repeat(32)}`,
    ADMIN_TOKEN: "a".repeat(32),
    PEERS: "{}",
    PROVIDERS: '[{ "id": "A", "base_url": "https://a.test", "regions": ["eu"] }]',
    MODELS: '[{ "id": "m", "kind": "chat" }]',
    ALIASES: '{ "fast": 1 }',
  });
  expect(parsed.ok ? [] : parsed.problems).toEqual([
    { variable: "PEERS", problem: "it must be an array, not an object" },
    { variable: "MODELS", problem: "[0].context is missing" },
    {
      variable: "PROVIDERS",
      problem: "[0].id must be lowercase letters, digits and hyphens",
    },
    { variable: "ALIASES", problem: "fast must be a string, not a number" },
  ]);
});

it("a peer's URL is one, without spaces in or around it", () => {
  const base = { REGION: "eu", KEY_SECRETS: `a:${"k".repeat(32)}`, ADMIN_TOKEN: "a".repeat(32) };
  const urls = ["http://127.0.0.1:1", "https://us.test/", "nope", "https://", "https://a b.test"];
  const accepted = [...urls, " https://us.test", "https://us.test "].filter(
    (url) => parseConfig({ ...base, PEERS: JSON.stringify([{ region: "us", url }]) }).ok,
  );
  expect(accepted).toEqual(["http://127.0.0.1:1", "https://us.test/"]);
});
