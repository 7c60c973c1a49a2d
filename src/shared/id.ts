import { assert } from "./assert.ts";

/** The base62 digits in ASCII order, so that encoded times sort. */
export const BASE62_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_CHARACTERS = 8;
const RANDOM_CHARACTERS = 16;

export const ID_CHARACTERS = TIME_CHARACTERS + RANDOM_CHARACTERS;

/** A buffer of random bytes, because `getRandomValues` is expensive. */
const randomPool = { bytes: new Uint8Array(1024), at: 1024 };

function randomByte(): number {
  if (randomPool.at === randomPool.bytes.length) {
    crypto.getRandomValues(randomPool.bytes);
    randomPool.at = 0;
  }
  const byte = randomPool.bytes[randomPool.at] ?? 0;
  randomPool.bytes[randomPool.at++] = 0; // erase used bytes, because they become part of keys
  return byte;
}

export function randomBase62(length: number): string {
  let out = "";
  while (out.length < length) {
    const byte = randomByte();
    if (byte < 248) out += BASE62_DIGITS.charAt(byte % 62);
  }
  return out;
}

export function timeToBase62(ms: number): string {
  assert(Number.isSafeInteger(ms) && ms >= 0, `a time must be whole milliseconds, got ${ms}`);
  let out = "";
  for (let rest = ms, i = 0; i < TIME_CHARACTERS; i++, rest = Math.floor(rest / 62)) {
    out = BASE62_DIGITS.charAt(rest % 62) + out;
  }
  return out;
}

/** Returns `prefix` and 24 characters: the time, then random. IDs sort by creation time. */
export function mintId(prefix: string, nowMs: number): string {
  return prefix + timeToBase62(nowMs) + randomBase62(RANDOM_CHARACTERS);
}

/** Returns an ID's creation time (Unix ms), or null for another format. */
export function creationTimeOfId(id: string, prefix: string): number | null {
  if (!id.startsWith(prefix) || id.length !== prefix.length + ID_CHARACTERS) return null;
  if (!/^[0-9A-Za-z]+$/.test(id.slice(prefix.length))) return null;
  let ms = 0;
  for (let i = 0; i < TIME_CHARACTERS; i++) {
    ms = ms * 62 + BASE62_DIGITS.indexOf(id.charAt(prefix.length + i));
  }
  return ms;
}

export function lowestIdAt(prefix: string, ms: number): string {
  return prefix + timeToBase62(Math.max(0, ms)) + "0".repeat(RANDOM_CHARACTERS);
}
