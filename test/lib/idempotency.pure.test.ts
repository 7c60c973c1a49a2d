import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hashIdempotentRequest, readIdempotencyKey } from "../../src/shared/idempotency.ts";

const encoder = new TextEncoder();
const REQUEST = { keyId: "key_1", orgId: "o", path: "/v1/embeddings", bytes: encoder.encode("{}") };

describe("an Idempotency-Key", () => {
  it("may have 1 to 255 characters from ! to ~, and no other characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        const codes = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
        const isKey =
          text.length > 0 && text.length < 256 && codes.every((code) => code > 32 && code < 127);
        expect(readIdempotencyKey(text).ok).toBe(isKey);
      }),
    );
    for (let code = 0; code < 256; code++) {
      const isKey = code >= 0x21 && code <= 0x7e;
      expect(readIdempotencyKey(`a${String.fromCharCode(code)}`).ok).toBe(isKey);
    }
    expect(readIdempotencyKey(undefined)).toEqual({ ok: true, value: null });
  });

  it("causes an error if sent in two headers, which the Headers class joins", () => {
    const headers = new Headers([
      ["idempotency-key", "a"],
      ["Idempotency-Key", "a"],
    ]);
    const refused = readIdempotencyKey(headers.get("idempotency-key") ?? undefined);
    expect(refused).toMatchObject({ ok: false, failure: { param: "Idempotency-Key" } });
  });
});

describe("the fingerprint of a request", () => {
  it("equals a SHA-256 hash of the content, which reveals nothing about the content", async () => {
    const found = await hashIdempotentRequest("order-7", REQUEST);
    // Computed by sha256sum from "key_1 order-7", and from "o /v1/embeddings " and the hash of
    // "{}".
    expect(found).toEqual({
      name: "c257b9b491680d301c89911f32f548dc95ae61882bff8c48c75dbe3e6502c7cf",
      body: "b757d265cae96c84931724d2c3454408fb6705edea6dd0e8fab096a6ddb1cc5e",
    });
  });

  it("differs for different API keys and for any change to the body", async () => {
    const first = await hashIdempotentRequest("a", REQUEST);
    const others = [{ orgId: "p" }, { path: "/v1/keys" }, { bytes: encoder.encode("{ }") }];
    for (const other of others) {
      const found = await hashIdempotentRequest("a", { ...REQUEST, ...other });
      expect(found.name).toBe(first.name);
      expect(found.body).not.toBe(first.body);
    }
    const found = await hashIdempotentRequest("a", { ...REQUEST, keyId: "key_2" });
    expect(found).toEqual({ name: expect.not.stringMatching(first.name), body: first.body });
  });
});
