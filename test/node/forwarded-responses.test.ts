import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Account } from "./support/account.ts";
import { call, openRemoteAccount } from "./support/peer-keys.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

let regions: TwoRegions;
let account: Account;
beforeAll(async () => {
  regions = await startTwoRegions();
  account = await openRemoteAccount(regions);
  const created = await call(regions.eu, account.key, "/users", { body: { external_id: "a/b" } });
  assert.equal(created.status, 201);
});
afterAll(() => regions.stop());

type Message = { readonly body?: string; readonly headers?: Readonly<Record<string, string>> };
type Row = readonly [status: number, line: string, of?: Message];

const MIB = 1024 * 1024;
const JSON_TYPE = { "content-type": "application/json" };
const json = (body: string): Message => ({ body, headers: JSON_TYPE });
/** Headers that can differ between two responses to the same request. */
const ITS_OWN = new Set([
  "date",
  "x-request-id",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
]);

/** A model lists the regions that sell it, here the called one. */
const REGIONS_OF_IT = /"regions":\["(eu|us)"\]/g;

/**
 * Sends a request with its path unchanged and a body for any method, which `fetch` doesn't allow.
 */
async function sent(region: TestRegion, line: string, { body = "", headers = {} }: Message) {
  const [method = "", written = ""] = line.split(" ");
  const { hostname, port } = new URL(region.url);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpRequest({
      hostname,
      port,
      method,
      path: written.replaceAll("ORG", account.orgId),
      headers: {
        authorization: `Bearer ${account.key}`,
        ...(body !== "" && { "content-length": String(Buffer.byteLength(body)) }),
        ...headers,
      },
      agent: false,
    });
    request.on("response", resolve).on("error", reject).end(body);
  });
  const kept = Object.entries(answer.headers).filter(([name]) => !ITS_OWN.has(name));
  const received = await text(answer);
  return {
    status: answer.statusCode,
    headers: Object.fromEntries(kept),
    body: received.replaceAll(/"last_used_at":("[^"]*"|null)/g, "").replaceAll(REGIONS_OF_IT, ""),
  };
}

/** Returns an end user's JSON, padded with spaces to this length. */
function padded(bytes: number): string {
  return `${'{"external_id":"a/b"'.padEnd(bytes - 1)}}`;
}

const ROWS: readonly Row[] = [
  [200, "GET /v1/balance"],
  [200, "GET /v1/balance", json("{}")],
  [200, "GET /v1/balance", { body: "no json" }],
  [200, "HEAD /v1/balance"],
  [200, "GET //v1/balance"],
  [200, "GET /v1//balance/"],
  [200, "GET /%761/balance"],
  [200, "GET /v1/./balance"],
  [200, "GET /v1/balance?a=%zz&b=//"],
  [405, "POST /v1/balance", json("{}")],
  [405, "DELETE /v1/balance", json("{}")],
  [405, "PURGE /v1/balance"],
  [405, "TRACE /v1/balance"],
  [404, "GET /v1"],
  [404, "GET /v1/"],
  [404, "POST /v1", json("{}")],
  [404, "GET /v1/chat"],
  [404, "GET /v1/chat/foo"],
  [404, "GET /v1/chat/completions/chatcmpl-1"],
  [404, "POST /v1/chat/completions/x", json("{}")],
  [404, "GET /v1/modelsx"],
  [404, "GET /v1/embeddings/x"],
  [404, "GET /v1/embeddingsx"],
  [404, "POST /v1/responsesx", json("{}")],
  [400, "POST /v1/responses", json("{}")],
  [400, "GET /v1/users/%zz"],
  [405, "GET /v1/chat/completions"],
  [405, "GET /v1/embeddings/"],
  [405, "POST /v1//models", json("{}")],
  [404, "GET /v1/models/no/such"],
  [200, "GET /v1/models/sandbox%2Fecho"],
  [200, "GET /v1/users/a%2Fb"],
  [200, "GET /v1/users/a/b"],
  [404, "GET /v1/users/a%252Fb"],
  [400, "GET /v1/users?limit=0"],
  [200, "GET /v1/keys"],
  [404, "DELETE /v1/keys/none", json("{}")],
  [405, "PUT /v1/keys"],
  [415, "POST /v1/keys"],
  [400, "POST /v1/keys", { headers: { ...JSON_TYPE, "content-length": "0" } }],
  [415, "POST /v1/keys", { body: "{}", headers: { "content-type": "text/plain" } }],
  [415, "POST /v1/users", { body: "{}", headers: { ...JSON_TYPE, "content-encoding": "br" } }],
  [400, "POST /v1/users", json('{"external_id":"\u0000"}')],
  [200, "POST /v1/users", json(padded(MIB))],
  [413, "POST /v1/users", json(padded(MIB + 1))],
  [400, "PATCH /v1/users/a%2Fb", json('{"daily_quota_dollars":-1}')],
  [200, "PATCH /v1/users/a%2Fb", json('{"daily_quota_dollars":2}')],
  [404, "GET /v1/orgs/none"],
  [200, "GET /v1/orgs/ORG/settings"],
  [400, "PATCH /v1/orgs/ORG", json('{"slug":"NO"}')],
  [404, "GET /v1/generations/req_none"],
  [401, "GET /v1/../admin/v1/orgs"],
  [204, "OPTIONS /v1/balance"],
];

describe("the other region's response to a forwarded request", () => {
  it.each(ROWS.map(([status, line, of = {}]) => [status, line, of] as const))(
    "equals the response of the home region: %i %s",
    async (status, line, of) => {
      const home = await sent(regions.eu, line, of);
      expect(home.status).toBe(status);
      expect(await sent(regions.us, line, of)).toEqual(home);
    },
  );
});
