import { beforeAll, describe, expect, it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { forwardedRequestToJson } from "../../src/accounts/keys/forward-format.ts";
import { verifySession } from "../../src/accounts/keys/session-token.ts";
import { keySecrets } from "../keys/key-fixture.ts";
import { send } from "./client.ts";
import { createSession } from "./session-client.ts";
import { deliverMessage, openKnown, sendAsPeer, signAsPeer } from "./peer-client.ts";
import type { KnownAccount } from "./peer-client.ts";

let account: KnownAccount;
beforeAll(async () => {
  account = await openKnown();
});

const FORWARD = "/internal/v1/forward";
const CALL = { method: "POST", path: "/v1/users", query: "", headers: {}, body: "e30=" };

describe("an invalid forwarded request", () => {
  it.each<[string, object]>([
    ["an invalid header name", { headers: { "a b": "application/json" } }],
    ["an invalid header value", { headers: { "content-type": "a\r\nb: c" } }],
    ["a body that is not base64", { body: "%%%" }],
    ["a body with GET", { method: "GET" }],
    ["a path on another host", { path: "//[", query: "" }],
  ])("returns an internal failure instead of a 500: %s", async (_, change) => {
    const message = { ...CALL, ...change, caller_key_hash: account.hash };
    expect(await sendAsPeer("forward", message)).toEqual({
      status: 200,
      body: { ok: false, failure: { kind: "internal" } },
    });
  });
});

/** Forwards a session's request to the home region, as the other region does. */
async function forward(token: string, method: string, path: string, sent: object | null) {
  const session = await verifySession(token, keySecrets());
  const credential = { keyHash: account.hash, ...(session !== null && { shown: session.shown }) };
  const body = sent === null ? null : new TextEncoder().encode(JSON.stringify(sent)).toBase64();
  const headers = { "content-type": "application/json" };
  const message = forwardedRequestToJson({
    method,
    path,
    query: "",
    headers,
    body,
    credential,
  });
  const requestId = mintId("req_", Date.now());
  const text = JSON.stringify({ v: 1, ...message });
  const reply = await deliverMessage(await signAsPeer({ path: FORWARD, body: text, requestId }));
  return (await reply.json<{ status: number }>()).status;
}

describe("a session's forwarded request", () => {
  it.each([
    ["POST", "/v1/holds", { amount_dollars: 0.01, pays: "quota", description: "a search" }],
    ["GET", "/v1/balance", null],
  ] as const)(
    "counts against the session's limit of requests per minute: %s %s",
    async (method, path, sent) => {
      const { token } = await createSession(account.key, { rpm_limit: 3 });
      const limited: boolean[] = [];
      for (let n = 0; n < 4; n++) {
        limited.push((await forward(token, method, path, sent)) === 429);
      }
      expect(limited).toEqual([false, false, false, true]);
      expect((await send("/v1/balance", { key: token })).status).toBe(429);
    },
  );
});
