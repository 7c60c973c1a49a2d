import { expect, it } from "vitest";
import type { PeerSecret } from "../../src/shared/config/config.ts";
import { verifySignature } from "../../src/regions/signature.ts";
import { signMessage } from "../fixtures/peer-message.ts";
import type { SignedMessage } from "../fixtures/peer-message.ts";

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const SECRET: PeerSecret = { sender: "eu", secret: "c".repeat(32) };

async function isTaken({ url, method, headers }: SignedMessage): Promise<boolean> {
  const request = { url, method, headers: new Headers(headers) };
  return (await verifySignature(request, [SECRET], NOW_MS)).ok;
}

it("a signed message is rejected with any changed, missing or doubled signed character", async () => {
  const message = await signMessage({
    url: "https://us.test/internal/v1/lookup?a=1&b=%2f",
    ...SECRET,
    signedAt: NOW_MS,
    body: '{"v":1}',
  });
  expect(await isTaken(message)).toBe(true);
  const { "content-type": type = "", ...covered } = message.headers;
  const changed: SignedMessage[] = [];
  for (const method of variants(message.method)) changed.push({ ...message, method });
  for (const url of urlVariants(message.url)) changed.push({ ...message, url });
  for (const [name, text] of Object.entries(covered)) {
    for (const other of variants(text)) {
      changed.push({ ...message, headers: { ...message.headers, [name]: other } });
    }
  }
  expect(changed.length).toBeGreaterThan(900);
  const taken = await Promise.all(changed.map(isTaken));
  expect(changed.filter((_one, i) => taken[i])).toEqual([]);
  // Unsigned parts may change, otherwise this test couldn't fail.
  expect(await isTaken({ ...message, headers: { ...covered, "content-type": `${type};x` } })).toBe(
    true,
  );
});

/** Returns every text that differs in one character: changed, removed or doubled. */
function variants(text: string): string[] {
  const others = text.split("").flatMap((character, at) => {
    const [before, after] = [text.slice(0, at), text.slice(at + 1)];
    return [flipped(character), "", character + character].map((other) => before + other + after);
  });
  return [...new Set(others)].filter((other) => other.trim() !== text);
}

/**
 * Returns the same changes of a URL after its scheme, which isn't signed. Fragments are never sent.
 */
function urlVariants(url: string): string[] {
  const start = "https://".length;
  const whole = new URL(url).href;
  return variants(url.slice(start))
    .map((rest) => url.slice(0, start) + rest)
    .filter((other) => URL.canParse(other) && new URL(other).href !== whole);
}

/**
 * Returns another character of the same class, so that its format alone doesn't reject it. A letter
 * gets the other case.
 */
function flipped(character: string): string {
  if (/[a-z]/.test(character)) return character.toUpperCase();
  if (/[A-Z]/.test(character)) return character.toLowerCase();
  if (/\d/.test(character)) return String((Number(character) + 1) % 10);
  return character === "+" ? "/" : "+";
}
