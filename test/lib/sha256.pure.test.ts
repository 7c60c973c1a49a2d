import { expect, it } from "vitest";
import { sha256HexSync } from "../../src/shared/hash.ts";

/** Computes the hash with the platform's function. */
async function awaited(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

it("the gateway's SHA-256 matches the platform's for lengths around three blocks and every kind of character", async () => {
  const texts = Array.from({ length: 400 }, (_, length) => "aé€😀\n".repeat(100).slice(0, length));
  const plain = Array.from({ length: 200 }, (_, length) => "x".repeat(length));
  for (const text of [...texts, ...plain]) {
    expect(sha256HexSync(text)).toBe(await awaited(text));
  }
});
