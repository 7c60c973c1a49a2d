import { beforeAll, describe, expect, it } from "vitest";
import { openKnown, sayAsPeer } from "./peer-client.ts";
import type { KnownAccount } from "./peer-client.ts";

let account: KnownAccount;
beforeAll(async () => {
  account = await openKnown();
});

const CALL = { method: "POST", path: "/v1/users", query: "", headers: {}, body: "e30=" };

describe("an invalid forwarded request", () => {
  it.each<[string, object]>([
    ["an invalid header name", { headers: { "a b": "application/json" } }],
    ["an invalid header value", { headers: { "content-type": "a\r\nb: c" } }],
    ["a body that is not base64", { body: "%%%" }],
    ["a body with GET", { method: "GET" }],
    ["a path on another host", { path: "//[", query: "" }],
  ])("returns an error instead of a 500, without a retry: %s", async (_, change) => {
    const message = { ...CALL, ...change, caller_key_hash: account.hash };
    expect(await sayAsPeer("forward", message)).toEqual({
      status: 200,
      body: { ok: false, failure: { kind: "internal" } },
    });
  });
});
