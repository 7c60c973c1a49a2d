import { beforeAll, describe, expect, it } from "vitest";
import { openKnown, sayAsPeer } from "./peer-client.ts";
import type { KnownAccount } from "./peer-client.ts";

let account: KnownAccount;
beforeAll(async () => {
  account = await openKnown();
});

const CALL = { method: "POST", path: "/v1/users", query: "", headers: {}, body: "e30=" };

describe("a forwarded request that no request can be", () => {
  it.each<[string, object]>([
    ["a name that no header has", { headers: { "a b": "application/json" } }],
    ["a value that no header has", { headers: { "content-type": "a\r\nb: c" } }],
    ["a body that is no base64", { body: "%%%" }],
    ["a body with GET", { method: "GET" }],
    ["a path on another host", { path: "//[", query: "" }],
  ])("%s: a definite no, not a 500", async (_, change) => {
    const message = { ...CALL, ...change, caller_key_hash: account.hash };
    expect(await sayAsPeer("forward", message)).toEqual({
      status: 200,
      body: { ok: false, failure: { kind: "internal" } },
    });
  });
});
