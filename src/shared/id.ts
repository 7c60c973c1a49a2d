import { assert } from "./assert.ts";

/** In ASCII order: what is written in it sorts like what it stands for. */
export const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_CHARACTERS = 8;
const RANDOM_CHARACTERS = 16;

/** Length of the part of an id that follows its prefix. */
export const ID_CHARACTERS = TIME_CHARACTERS + RANDOM_CHARACTERS;

/** Random bytes are drawn so many at a time, each used once: asking the platform costs more than using them. */
const drawn = { bytes: new Uint8Array(1024), at: 1024 };

function randomByte(): number {
  if (drawn.at === drawn.bytes.length) {
    crypto.getRandomValues(drawn.bytes);
    drawn.at = 0;
  }
  const byte = drawn.bytes[drawn.at] ?? 0;
  drawn.bytes[drawn.at++] = 0; // keys are made of these
  return byte;
}

/** `length` uniform base62 characters (rejection sampling: no modulo bias). */
export function randomBase62(length: number): string {
  let out = "";
  while (out.length < length) {
    const byte = randomByte();
    if (byte < 248) out += BASE62.charAt(byte % 62);
  }
  return out;
}

/** 8 base62 characters that sort like the time they stand for (alphabet in ASCII order). */
export function base62Time(ms: number): string {
  assert(Number.isSafeInteger(ms) && ms >= 0, `a time must be whole milliseconds, got ${ms}`);
  let out = "";
  for (let rest = ms, i = 0; i < TIME_CHARACTERS; i++, rest = Math.floor(rest / 62)) {
    out = BASE62.charAt(rest % 62) + out;
  }
  return out;
}

/** An id: prefix + minting time + randomness, e.g. `req_` + 24 characters; ids sort by minting time. */
export function mintId(prefix: string, nowMs: number): string {
  return prefix + base62Time(nowMs) + randomBase62(RANDOM_CHARACTERS);
}

/** When an id was minted, Unix ms, or null when it is not `prefix` + 24 base62 characters. */
export function mintedAt(id: string, prefix: string): number | null {
  if (!id.startsWith(prefix) || id.length !== prefix.length + ID_CHARACTERS) return null;
  if (!/^[0-9A-Za-z]+$/.test(id.slice(prefix.length))) return null;
  let ms = 0;
  for (let i = 0; i < TIME_CHARACTERS; i++) {
    ms = ms * 62 + BASE62.indexOf(id.charAt(prefix.length + i));
  }
  return ms;
}

/** The smallest id that can have been minted at `ms`: a bound for range scans over ids. */
export function idFloor(prefix: string, ms: number): string {
  return prefix + base62Time(Math.max(0, ms)) + "0".repeat(RANDOM_CHARACTERS);
}
