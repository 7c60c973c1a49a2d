import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import { sendRaw } from "./support/raw-responses.ts";
import type { RawResponses } from "./support/raw-responses.ts";
import { ADMIN_TOKEN, startPersistentRegion } from "./support/two-regions.ts";

/** Bytes that client libraries don't send. In a deployment, the edge's parser is in front. */
let region: Awaited<ReturnType<typeof startPersistentRegion>>;
let account: Account;
let auth: string;
beforeAll(async () => {
  region = await startPersistentRegion({}, { direct: true });
  account = await Account.open(region.region);
  auth = `Authorization: Bearer ${account.key}\r\n`;
});
afterAll(() => region.stop());

const HOST = "Host: localhost\r\n"; // plain http only works on localhost
const TYPE = "Content-Type: application/json\r\n";
const CHAT = JSON.stringify({ model: "sandbox/echo", messages: [{ role: "user", content: "hi" }] });
const LENGTH = `Content-Length: ${CHAT.length}\r\n`;
/** Ends a connection. Nothing can follow this request. */
const LAST = `GET /healthz HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
const CHUNKED = `${CHAT.length.toString(16)}\r\n${CHAT}\r\n0\r\n\r\n`;

const sent = (bytes: string | Buffer): Promise<RawResponses> =>
  sendRaw(region.region().directUrl, bytes);
const get = (path: string, headers: string, method = "GET"): string =>
  `${method} ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
const post = (headers: string, body: string): string =>
  `POST /v1/chat/completions HTTP/1.1\r\n${HOST}${TYPE}${headers}\r\n${body}`;

/** Returns the micro-credits that `work` cost. */
async function charged(work: () => Promise<unknown>): Promise<number> {
  const before = await account.fullBalance();
  await work();
  const after = await account.fullBalance();
  expect(after.open_holds).toBe(0);
  return before.credits_micro - after.credits_micro;
}

describe("a request body with two declared lengths", () => {
  it("ends at the last chunk if the request has both a Content-Length and chunks", async () => {
    const both = `${LENGTH}Transfer-Encoding: chunked\r\n${auth}`;
    const { statuses } = await sent(post(both, CHUNKED) + LAST);
    expect(statuses).toEqual([200]);
  });

  it("can't hide a second request after the last chunk", async () => {
    const hidden = post(`${auth}${LENGTH}`, CHAT);
    const both = `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n${auth}`;
    const cost = await charged(async () => {
      const { statuses } = await sent(post(both, `0\r\n\r\n${hidden}`));
      expect(statuses).toEqual([400]);
    });
    expect(cost).toBe(0);
  });

  it.each([
    ["two lengths", `${LENGTH}Content-Length: 3\r\n`],
    ["a list of lengths", `Content-Length: ${CHAT.length}, ${CHAT.length}\r\n`],
    ["a negative length", "Content-Length: -1\r\n"],
    ["a length with a sign", `Content-Length: +${CHAT.length}\r\n`],
    ["a length in hex", `Content-Length: 0x${CHAT.length.toString(16)}\r\n`],
    ["a length beyond any number", `Content-Length: ${"9".repeat(40)}\r\n`],
    ["an unknown coding", "Transfer-Encoding: xchunked\r\n"],
    ["chunks within another coding", "Transfer-Encoding: chunked, identity\r\n"],
    ["a vertical tab before the coding", "Transfer-Encoding: \u000bchunked\r\n"],
    ["a space before the colon", `Content-Length : ${CHAT.length}\r\n`],
    ["a folded line", `X-A: b\r\n c\r\n${LENGTH}`],
    ["a NUL in a header", `X-A: b\u0000c\r\n${LENGTH}`],
  ])("returns 400, closes the connection and runs nothing: %s", async (_, headers) => {
    const cost = await charged(async () => {
      const { statuses } = await sent(post(auth + headers, CHAT) + LAST);
      expect(statuses).toEqual([400]);
    });
    expect(cost).toBe(0);
  });

  it.each([
    ["negative", `-1\r\n${CHAT}\r\n0\r\n\r\n`],
    ["too large", `${"F".repeat(20)}\r\n${CHAT}\r\n0\r\n\r\n`],
    ["not a number", `zz\r\n${CHAT}\r\n0\r\n\r\n`],
    ["longer than declared", `3\r\n${CHAT}\r\n0\r\n\r\n`],
  ])("returns 400 with a chunk length that is %s", async (_, body) => {
    const cost = await charged(async () => {
      const { statuses } = await sent(post(`${auth}Transfer-Encoding: chunked\r\n`, body));
      expect(statuses).toEqual([400]);
    });
    expect(cost).toBe(0);
  });
});

describe("each of several requests on one connection", () => {
  it("authenticates separately, and gets its response in order", async () => {
    const { statuses } = await sent(
      get("/v1/models", "") +
        get("/v1/models/none", auth) +
        get("/v1/models", "") +
        post("Authorization: Bearer nobody\r\n" + LENGTH, CHAT) +
        get("/v1/balance", auth) +
        LAST,
    );
    expect(statuses).toEqual([401, 404, 401, 401, 200, 200]);
  });

  it("ignores a key that is sent in a trailer", async () => {
    const body = CHUNKED.replace(/\r\n$/, `${auth}\r\n`);
    const trailing = "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n";
    const { statuses } = await sent(post(trailing, body) + LAST);
    expect(statuses[0]).toBe(401);
  });
});

describe("a request body that never arrives in full", () => {
  it("causes a 408 for a request with a key, and the connection closes", async () => {
    // long enough to read complete bodies on a slow machine
    await region.restart({ BODY_TIMEOUT_MS: "200" });
    const { statuses } = await sent(post(`${auth}Content-Length: 1000\r\n`, '{"model":'));
    expect(statuses).toEqual([408]);
  });

  it("causes an immediate 401 for a request without a key", async () => {
    await region.restart({ BODY_TIMEOUT_MS: "60000" }); // longer than this test can take
    const { statuses } = await sent(
      post("Authorization: Bearer nobody\r\nContent-Length: 20000000\r\n", "{"),
    );
    expect(statuses).toEqual([401]);
  });
});

describe("an unusual request head", () => {
  it.each([
    ["two hosts", "Host: evil.test\r\n"],
    ["a header of 200 KB", `X-A: ${"a".repeat(200_000)}\r\n`],
    ["2,000 headers", Array.from({ length: 2000 }, (_, i) => `X-${i}: a\r\n`).join("")],
    [
      "a websocket upgrade",
      "Upgrade: websocket\r\nSec-WebSocket-Key: AA==\r\nSec-WebSocket-Version: 13\r\n",
    ],
  ])("changes nothing or returns an error: %s", async (_, headers) => {
    const { statuses, text } = await sent(get("/v1/models", auth + headers) + LAST);
    expect([200, 400, 431]).toContain(statuses[0]);
    expect(text).not.toContain("evil.test");
    expect(text).not.toContain("101 Switching");
  });

  it("ignores a foreign host in the request line", async () => {
    const { statuses, text } = await sent(get("http://evil.test/v1/models", auth) + LAST);
    expect(statuses).toEqual([200, 200]);
    expect(text).not.toContain("evil.test");
  });

  it.each(["TRACE", "CONNECT", "FOO", "PROPFIND", "get"])(
    "changes nothing for the method %s, and the response doesn't contain the API key",
    async (method) => {
      const { statuses, text } = await sent(
        get("/v1/keys", `${auth}Connection: close\r\n`, method),
      );
      expect(statuses).toHaveLength(1);
      expect(statuses[0]).toBeGreaterThanOrEqual(400);
      expect(text).not.toContain(account.key);
    },
  );

  it.each(["\r\nset-cookie: a=b", "%0d%0aset-cookie:%20a=b", "%E5%98%8A%E5%98%8Dset-cookie: a"])(
    "adds no response header through a line break in a value: %j",
    async (text) => {
      const inPath = encodeURI(text).replaceAll("%25", "%");
      const request = get(`/v1/models/x${inPath}`, auth) + LAST;
      const preflight = `Access-Control-Request-Headers: x${text.replace("\r\n", "\r ")}\r\n`;
      for (const bytes of [request, get("/v1/keys", preflight, "OPTIONS") + LAST]) {
        expect((await sent(bytes)).text).not.toMatch(/^set-cookie:/im);
      }
    },
  );

  it("causes no server error if a preflight contains invalid bytes", async () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x80, 0x01, 0x7f]);
    const head = `OPTIONS /v1/keys HTTP/1.1\r\n${HOST}Access-Control-Request-Headers: x`;
    const { statuses } = await sent(
      Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n\r\n${LAST}`)]),
    );
    expect(statuses).toEqual([204, 200]);
  });
});

describe("an ambiguous path", () => {
  it.each([
    "/v1/../admin/v1/orgs",
    "/v1/%2e%2e/admin/v1/orgs",
    "/v1/..%2fadmin/v1/orgs",
    String.raw`/v1\..\admin\v1\orgs`,
    "/v1/./../admin/v1/orgs",
    "//admin/v1/orgs/../../../v1/models",
    "/healthz/../admin/v1/orgs",
    "/v1/models/../../internal/v1/lookup",
    "/v1;/../admin/v1/orgs",
  ])("leads to no other endpoint: %s", async (path) => {
    const own = await sent(get(path, auth) + LAST);
    expect([400, 401, 404]).toContain(own.statuses[0]);
    const none = await sent(get(path, "") + LAST);
    expect([400, 401, 404]).toContain(none.statuses[0]);
    expect(own.text + none.text).not.toContain('"organizations"');
  });

  it("leaves the operator endpoint available at the normal path", async () => {
    const token = `Authorization: Bearer ${ADMIN_TOKEN}\r\n`;
    const { statuses, text } = await sent(get("/admin/v1/orgs", token) + LAST);
    expect(statuses).toEqual([200, 200]);
    expect(text).toContain('"organizations"');
  });
});
