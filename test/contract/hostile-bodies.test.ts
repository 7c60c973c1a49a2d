import { beforeAll, describe, expect, it } from "vitest";
import { BODY_BYTES_MAX, MANAGEMENT_BYTES_MAX } from "../../src/shared/http/read-json.ts";
import { ADMIN_TOKEN, balanceOf, chat, errorOf, openAccount, send } from "./client.ts";

let key: string;
let orgId: string;
beforeAll(async () => {
  ({ key, orgId } = await openAccount());
});

const PATHS = ["/v1/chat/completions", "/v1/embeddings"];
const GOOD = '{"model":"sandbox/echo","messages":[{"role":"user","content":"hi"}]}';

const post = (
  body: string | Uint8Array | ReadableStream,
  headers: Record<string, string> = {},
  path = "/v1/chat/completions",
): Promise<Response> => send(path, { method: "POST", key, body, headers });

const bytes = (...parts: (string | number[])[]): Uint8Array =>
  Uint8Array.from(
    parts.flatMap((part) =>
      typeof part === "string" ? Array.from(new TextEncoder().encode(part)) : part,
    ),
  );
/** Returns a body that is valid except for these bytes in a text. */
const withText = (content: number[]): Uint8Array => {
  const [head = "", tail = ""] = GOOD.split("hi");
  return bytes(head, content, tail);
};
const padded = (size: number): Uint8Array => bytes(`{"name":7,"x":"${"x".repeat(size - 17)}"}`);
const remainingRequests = (response: Response): number =>
  Number(response.headers.get("x-ratelimit-remaining-requests"));
const nested = (depth: number): string =>
  `{"model":"sandbox/echo","messages":[{"role":"user","content":"hi"}],"x":${"[".repeat(depth)}${"]".repeat(depth)}}`;

describe("a POST request with a hostile body", () => {
  it.each<[string, string | Uint8Array]>([
    ["nothing", ""],
    ["an array", "[]"],
    ["truncated JSON", GOOD.slice(0, -1)],
    ["65 levels", nested(64)],
    ["a duplicate key in a nested object", GOOD.replace('"role"', '"role":"system","role"')],
    ["a byte order mark", bytes([0xef, 0xbb, 0xbf], GOOD)],
    ["UTF-8 truncated within a character", withText([0xc3])],
    ["a lone surrogate", GOOD.replace("hi", String.raw`\ud800`)],
    ["more than a million values", GOOD.replace("{", `{"x":[${"{},".repeat(1_000_001)}{}],`)],
  ])("returns 400 for a body with %s", async (_, body) => {
    for (const path of PATHS) {
      const error = await errorOf(await post(body, {}, path), 400);
      expect(error.type).toBe("invalid_request_error");
      expect(error.message).not.toMatch(/at position|Unexpected token|SyntaxError/);
    }
  });

  it("succeeds on a retry with a corrected body", async () => {
    expect((await post(GOOD)).status).toBe(200);
    expect((await post(withText([0xc3, 0xa9]))).status).toBe(200);
    expect((await post(GOOD.replace("{", '{"x":1,'))).status).toBe(200);
  });

  it("counts as one request against the rate limit, but isn't charged", async () => {
    const before = await balanceOf(key);
    const first = await post("{");
    const second = await post("{");
    expect(remainingRequests(first) - remainingRequests(second)).toBe(1);
    expect(await balanceOf(key)).toBe(before);
  });
});

describe("a POST request with names of JavaScript's built-in properties", () => {
  it.each([
    '"__proto__":{"polluted":1,"stream":true}',
    '"constructor":{"prototype":{"polluted":1}}',
    '"logit_bias":{"__proto__":5,"1":1}',
    '"metadata":{"__proto__":{"polluted":1}}',
    '"hasOwnProperty":1,"toString":"x","valueOf":null',
    '"stream_options":{"__proto__":{"include_usage":true}}',
    '"tools":[{"type":"function","function":{"name":"__proto__","parameters":{"__proto__":{"a":1}}}}],"tool_choice":"none"',
  ])("treats %s as an ordinary field", async (member) => {
    const response = await post(GOOD.replace("}]}", `}],${member}}`));
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.status).toBe(200);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect((await chat(key)).headers.get("content-type")).toBe("application/json");
  });

  it("ignores values in __proto__ instead of using them for missing fields", async () => {
    const body =
      '{"__proto__":{"model":"sandbox/echo"},"messages":[{"role":"user","content":"a"}]}';
    expect((await errorOf(await post(body), 400)).param).toBe("model");
  });
});

describe("a POST request with a large body", () => {
  it("returns 413 for a content-length over 20 MiB, without reading the body", async () => {
    const headers = { "content-length": String(BODY_BYTES_MAX + 1) };
    const error = await errorOf(await post("{}", headers), 413);
    expect(error.message).toContain(String(BODY_BYTES_MAX));
  });

  it.each([
    ["POST", "/v1/users"],
    ["PATCH", "/v1/users/nobody"],
    ["POST", "/v1/keys"],
    ["PATCH", "/v1/orgs/ORG"],
    ["PATCH", "/v1/orgs/ORG/settings"],
    ["POST", "/admin/v1/orgs"],
    ["PATCH", "/admin/v1/orgs/ORG"],
  ])(
    "accepts 1 MiB but returns 413 for larger bodies at %s %s, with or without content-length",
    async (method, path) => {
      const sent = (body: Uint8Array | ReadableStream, headers: Record<string, string> = {}) =>
        send(path.replace("ORG", orgId), {
          method,
          key: path.startsWith("/admin") ? ADMIN_TOKEN : key,
          body,
          headers,
        });
      const over = padded(MANAGEMENT_BYTES_MAX + 1);
      const declared = await sent(over, { "content-length": String(over.byteLength) });
      expect((await errorOf(declared, 413)).message).toContain(String(MANAGEMENT_BYTES_MAX));
      const undeclared = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(over);
          controller.close();
        },
      });
      await errorOf(await sent(undeclared), 413);
      expect((await sent(padded(MANAGEMENT_BYTES_MAX))).status).not.toBe(413);
    },
  );
});
