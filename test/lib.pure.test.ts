import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lowestIdAt, mintId, creationTimeOfId } from "../src/shared/id.ts";
import { micros, microsOfDollars } from "../src/shared/money.ts";
import { parseConfig } from "../src/shared/config/config.ts";

it("an ID contains its creation time, so that IDs sort by time", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 41), fc.nat(2 ** 41), (a, b) => {
      const [one, two] = [mintId("req_", a), mintId("req_", b)];
      expect(creationTimeOfId(one, "req_")).toBe(a);
      expect(a < b ? one < two : true).toBe(true);
      expect(lowestIdAt("req_", a) <= one).toBe(true);
    }),
  );
});

it("a dollar amount either converts exactly to micro-credits or is rejected", () => {
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

it("an error about a missing, short or malformed binding contains the name of the binding, but not the value", () => {
  const parsed = parseConfig({ REGION: "eu", KEY_SECRETS: "a:short", ADMIN_TOKEN: "hunter2" });
  expect(parsed.ok).toBe(false);
  if (parsed.ok) return;
  expect(parsed.problems.map((problem) => problem.variable).toSorted()).toEqual([
    "ADMIN_TOKEN",
    "KEY_SECRETS",
  ]);
  expect(JSON.stringify(parsed)).not.toContain("hunter2");
});

it("an error about a malformed JSON variable names the invalid field and the rule for the field", () => {
  const parsed = parseConfig({
    REGION: "eu",
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
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

describe("the configuration of another region", () => {
  const EU_SIGNS = "eu-signs-".padEnd(32, "0123");
  const US_SIGNS = "us-signs-".padEnd(32, "0123");
  const NEXT = "n".repeat(32);
  const base = {
    REGION: "eu",
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
    SANDBOX: "on",
    PEERS: '[{"region":"us","url":"https://us.test/"}]',
    PEER_OUT_US: EU_SIGNS,
    PEER_IN_US: US_SIGNS,
  };
  const peersOf = (vars: Record<string, string>) => {
    const parsed = parseConfig({ ...base, ...vars });
    return parsed.ok ? parsed.config.peers : parsed.problems.map(({ variable }) => variable);
  };
  const us = { region: "us", url: "https://us.test", signing: { sender: "eu", secret: EU_SIGNS } };

  it("signs with the next secret once one exists, and accepts both the current and the next secret", () => {
    const accepted = [{ sender: "us", secret: US_SIGNS }];
    const next = { sender: "us", secret: NEXT };
    expect(peersOf({})).toEqual([{ ...us, accepted }]);
    expect(peersOf({ PEER_IN_US_NEXT: NEXT })).toEqual([{ ...us, accepted: [...accepted, next] }]);
    expect(peersOf({ PEER_OUT_US_NEXT: NEXT })).toEqual([
      { ...us, accepted, signing: { sender: "eu", secret: NEXT } },
    ]);
  });

  it("accepts a next secret that equals the current secret, as at the end of a rotation", () => {
    expect(peersOf({ PEER_IN_US_NEXT: US_SIGNS, PEER_OUT_US_NEXT: EU_SIGNS })).toEqual([
      { ...us, accepted: [{ sender: "us", secret: US_SIGNS }] },
    ]);
  });

  it.each([
    ["PEER_IN_US", { PEER_IN_US: EU_SIGNS }],
    ["PEER_IN_US", { PEER_IN_US: NEXT, PEER_OUT_US_NEXT: NEXT }],
    ["PEER_IN_US_NEXT", { PEER_IN_US_NEXT: EU_SIGNS }],
    ["PEER_IN_US_NEXT", { PEER_IN_US_NEXT: NEXT, PEER_OUT_US_NEXT: NEXT }],
  ])("rejects equal secrets for sending and receiving: %s", (variable, vars) => {
    expect(peersOf(vars)).toEqual([variable]);
  });

  it("requires no secrets if PEERS is empty", () => {
    expect(peersOf({ PEERS: "[]", PEER_OUT_US: "", PEER_IN_US: "" })).toEqual([]);
    expect(peersOf({ PEERS: "", PEER_OUT_US: "", PEER_IN_US: "" })).toEqual([]);
  });

  it("requires an https origin, or http on loopback if the sandbox is on", () => {
    const urls = [
      "https://us.test",
      "https://us.test/",
      "https://us.test:8443",
      "https://127.0.0.1:1",
      "http://127.0.0.1:1",
      "http://localhost:8788",
      "http://[::1]:2",
      "nope",
      "https://",
      "https://a b.test",
      " https://us.test",
      "https://us.test ",
      "http://us.test",
      "http://127.0.0.1.evil.test",
      "ftp://127.0.0.1",
      "http://10.0.0.1",
      "https://us.test/v1",
      "https://us.test/?a",
      "https://us.test/#a",
      "https://a@us.test",
    ];
    const accepted = (SANDBOX: string): string[] =>
      urls.filter(
        (url) =>
          parseConfig({ ...base, SANDBOX, PEERS: JSON.stringify([{ region: "us", url }]) }).ok,
      );
    expect(accepted("on")).toEqual(urls.slice(0, 7));
    expect(accepted("off")).toEqual(urls.slice(0, 4));
  });
});
