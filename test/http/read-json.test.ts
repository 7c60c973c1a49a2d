import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { BODY_BYTES_MAX, readBodyBytes, readJson } from "../../src/shared/http/read-json.ts";

const limits = { bytesMax: 1024, timeoutMs: 1000 };
const utf8 = (text: string) => new TextEncoder().encode(text);

function post(body: BodyInit | null, headers: Record<string, string> = {}): Request {
  return new Request("http://eu.test/v1/x", {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });
}

/**
 * Returns a body of unknown length that arrives in these pieces, then ends, fails or stays silent.
 */
function arriving(pieces: readonly Uint8Array[], end: "close" | "error" | "silence" = "close") {
  const state = { cancelled: false, pulled: 0 };
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = pieces[state.pulled++];
        if (piece !== undefined) controller.enqueue(piece);
        else if (end === "close") controller.close();
        else if (end === "error") controller.error(new Error("connection reset"));
        else await new Promise(() => undefined);
      },
      cancel() {
        state.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { request: post(stream), state };
}

function sized(bytes: number): string {
  return `{"a":"${"x".repeat(bytes - 8)}"}`;
}

async function kindOf(request: Request, with_ = limits): Promise<string> {
  const result = await readJson(request, with_);
  return result.ok ? "accepted" : result.failure.kind;
}

async function messageOf(body: BodyInit | null): Promise<string> {
  const result = await readJson(post(body), limits);
  if (result.ok || result.failure.kind !== "invalid_request") return "not a 400";
  return result.failure.message;
}

describe("the content type of a request with a JSON body", () => {
  it.each([
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    'application/json ; charset="Utf-8"',
    "application/json; charset=utf8",
    "application/json;",
  ])("can be %s", async (type) => {
    expect(await readJson(post("{}", { "content-type": type }), limits)).toEqual({
      ok: true,
      value: {},
    });
  });

  it.each([
    "text/plain",
    "application/json; charset=utf-16",
    "application/json; charset=latin1",
    "application/jsonp",
    "application/vnd.api+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=application/json",
    "application/json, text/plain",
    "",
  ])("results in a 415 if the content type is %j", async (type) => {
    expect(await kindOf(post("{}", { "content-type": type }))).toBe("unsupported_media_type");
  });

  it("results in a 415 if the header is missing", async () => {
    const request = new Request("http://eu.test/", { method: "POST", body: utf8("{}") });
    expect(request.headers.has("content-type")).toBe(false);
    expect(await kindOf(request)).toBe("unsupported_media_type");
  });

  it("results in a 415 for a compressed body, but not for the content-encoding identity", async () => {
    expect(await kindOf(post("{}", { "content-encoding": "gzip" }))).toBe("unsupported_media_type");
    expect(await kindOf(post("{}", { "content-encoding": "Identity" }))).toBe("accepted");
  });
});

describe("the size of a request body", () => {
  it("may equal the limit, but results in a 413 if it exceeds the limit by one byte", async () => {
    expect(await kindOf(post(sized(1024)))).toBe("accepted");
    const result = await readJson(post(sized(1025)), limits);
    expect(result).toEqual({ ok: false, failure: { kind: "body_too_large", bytesMax: 1024 } });
  });

  it("results in a 413 before the body is read if the declared size exceeds the limit", async () => {
    const { request, state } = arriving([utf8("{}")]);
    request.headers.set("content-length", "1025");
    expect(await kindOf(request)).toBe("body_too_large");
    expect(await readBodyBytes(request, limits)).toMatchObject({
      failure: { kind: "body_too_large" },
    });
    expect(state.pulled).toBe(0);
  });

  it("counts only the bytes received, whatever length the request declares", async () => {
    expect(await kindOf(post(sized(1025), { "content-length": "2" }))).toBe("body_too_large");
    expect(await kindOf(post(sized(1025), { "content-length": "few" }))).toBe("body_too_large");
    expect(await kindOf(post(sized(1025), { "content-length": "-1" }))).toBe("body_too_large");
  });

  it("stops the reading at the limit if the request declares no length", async () => {
    const { request, state } = arriving(Array.from({ length: 100 }, () => new Uint8Array(512)));
    expect(await kindOf(request)).toBe("body_too_large");
    expect(state.pulled).toBeLessThanOrEqual(4);
    expect(state.cancelled).toBe(true);
  });

  it("may reach 20 MB if the endpoint's limit is 20 MB", async () => {
    const text = sized(BODY_BYTES_MAX);
    const result = await readJson(post(text), { bytesMax: BODY_BYTES_MAX, timeoutMs: 30_000 });
    expect(result.ok && result.value["a"]).toHaveLength(BODY_BYTES_MAX - 8);
  });

  it("results in a 400 instead of a 413 for 1 MB of JSON with a million nested levels", async () => {
    const result = await readJson(post(`{"a":${"[".repeat(1_000_000)}`), {
      ...limits,
      bytesMax: BODY_BYTES_MAX,
    });
    expect(result).toMatchObject({ failure: { kind: "invalid_request" } });
  });
});

describe("a request body that arrives too slowly", () => {
  it("returns 408 if the rest of the body doesn't arrive, and 400 if the connection breaks off", async () => {
    const [silent, broken] = [arriving([utf8("{")], "silence"), arriving([utf8("{")], "error")];
    for (const { request } of [silent, broken]) request.headers.set("content-length", "9");
    const kinds = [silent, broken].map(({ request }) =>
      kindOf(request, { bytesMax: 1024, timeoutMs: 10 }),
    );
    expect(await Promise.all(kinds)).toEqual(["request_timeout", "invalid_request"]);
  });

  it("returns 408 and stops reading if no more bytes arrive", async () => {
    const { request, state } = arriving([utf8('{"a":')], "silence");
    expect(await kindOf(request, { bytesMax: 1024, timeoutMs: 10 })).toBe("request_timeout");
    expect(state.cancelled).toBe(true);
  });

  it("returns 400 without an exception if the upload breaks off", async () => {
    const { request } = arriving([utf8('{"a":')], "error");
    expect(await kindOf(request)).toBe("invalid_request");
  });
});

describe("a request body", () => {
  it("contains the right character even if the character is split between two reads", async () => {
    const bytes = utf8('{"a":"ä😀"}');
    const pieces = Array.from(bytes, (byte) => new Uint8Array([byte]));
    const declared = arriving(pieces).request;
    declared.headers.set("content-length", String(bytes.length));
    const value = { a: "ä😀" };
    expect(await readJson(arriving(pieces).request, limits)).toEqual({ ok: true, value });
    expect(await readJson(declared, limits)).toEqual({ ok: true, value });
  });

  it("results in a 400 if empty", async () => {
    expect(await messageOf(null)).toBe("The request body is empty.");
    expect(await messageOf("")).toBe("The request body is empty.");
    const { request } = arriving([]);
    expect(await kindOf(request)).toBe("invalid_request");
  });

  it.each([
    ["a lone continuation byte", [0x80]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["an encoded surrogate", [0xed, 0xa0, 0x80]],
    ["a truncated character", [0xf0, 0x9f]],
    ["a code point beyond Unicode", [0xf4, 0x90, 0x80, 0x80]],
  ])("results in a 400 if the bytes contain %s", async (_, bad) => {
    const bytes = new Uint8Array([...utf8('{"user":"'), ...bad, ...utf8('"}')]);
    expect(await messageOf(bytes)).toBe("The request body is not valid UTF-8.");
  });

  it("results in a 400 with a byte order mark or in UTF-16", async () => {
    expect(await messageOf(new Uint8Array([0xef, 0xbb, 0xbf, ...utf8("{}")]))).toContain(
      "byte order mark",
    );
    expect(await messageOf(new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0]))).toContain("UTF-8");
  });
});

it("the function readJson returns the result of JSON.parse, or an error for damaged bytes, and never throws", async () => {
  const body = utf8(
    JSON.stringify({
      model: "m",
      messages: [{ role: "user", content: 'ä"\n\u0001😀' }],
      n: -1.5e3,
    }),
  );
  const damage = fc.array(fc.tuple(fc.nat(body.length - 1), fc.nat(255)), { maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(damage, fc.nat(body.length), async (changes, cut) => {
      const bytes = body.slice();
      for (const [at, byte] of changes) bytes[at] = byte;
      const { request } = arriving([bytes.subarray(0, cut), bytes.subarray(cut)]);
      if (cut % 2 === 0) request.headers.set("content-length", String(bytes.length));
      const result = await readJson(request, limits);
      // Numbers keep their digits, so both sides are compared by value.
      const read = result.ok ? reparsed(JSON.stringify(result.value)) : result.failure.kind;
      const expected = result.ok ? reparsed(new TextDecoder().decode(bytes)) : "invalid_request";
      expect(read).toBe(expected);
    }),
    { numRuns: effortFor(150, 5000) },
  );
});

function reparsed(text: string): string {
  return JSON.stringify(JSON.parse(text));
}
