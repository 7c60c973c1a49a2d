import { BASE62_DIGITS } from "./id.ts";

/** Returns the 32-bit FNV-1a hash of a text's UTF-16 units. Not for secrets. */
export function fnv1a(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * Returns an evenly distributed 32-bit hash: `fnv1a` with MurmurHash3's finalizer. Not for secrets.
 */
export function distributedHash32(text: string, seed = 0): number {
  let hash = fnv1a(text, seed);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Returns a base62 hash of a text. Not for secrets. */
export function base62Hash(text: string, length: number): string {
  let out = "";
  for (let i = 0; i < length; i++) out += BASE62_DIGITS.charAt(distributedHash32(text, i + 1) % 62);
  return out;
}

const encoder = new TextEncoder();

export async function sha256Hex(of: string | Uint8Array): Promise<string> {
  const bytes = typeof of === "string" ? encoder.encode(of) : of;
  const { buffer, byteOffset, byteLength } = bytes;
  const view =
    buffer instanceof ArrayBuffer ? new Uint8Array(buffer, byteOffset, byteLength) : bytes.slice();
  return hexOf(new Uint8Array(await crypto.subtle.digest("SHA-256", view)));
}

export function hexOf(bytes: Uint8Array): string {
  let hex = "";
  for (const byte of bytes) hex += byte.toString(16).padStart(2, "0");
  return hex;
}

/** Returns the SHA-256 (FIPS 180-4) in hex, without `await`, for use in transactions. */
export function sha256HexSync(text: string): string {
  const message = padMessage(encoder.encode(text));
  const state = firstBits(8, 1 / 2);
  for (let at = 0; at < message.byteLength; at += 64) compress(state, message, at);
  return [...state].map((word) => word.toString(16).padStart(8, "0")).join("");
}

function padMessage(bytes: Uint8Array): DataView {
  const paddedBytes = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  paddedBytes.set(bytes);
  paddedBytes[bytes.length] = 0x80;
  const view = new DataView(paddedBytes.buffer);
  view.setBigUint64(paddedBytes.length - 8, BigInt(bytes.length) * 8n);
  return view;
}

function firstBits(count: number, power: number): Uint32Array {
  const bits = new Uint32Array(count);
  for (let found = 0, n = 2; found < count; n++) {
    if (!isPrime(n)) continue;
    const root = n ** power;
    bits[found++] = (root - Math.floor(root)) * 2 ** 32;
  }
  return bits;
}

function isPrime(n: number): boolean {
  for (let factor = 2; factor * factor <= n; factor++) if (n % factor === 0) return false;
  return true;
}

const ROUNDS = firstBits(64, 1 / 3);

function rotateRight(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

function compress(state: Uint32Array, message: DataView, at: number): void {
  let next = [...state];
  for (const [i, word] of schedule(message, at).entries()) {
    next = mixState(next, (ROUNDS[i] ?? 0) + word);
  }
  for (const [i, value] of next.entries()) state[i] = (state[i] ?? 0) + value;
}

function schedule(message: DataView, at: number): Uint32Array {
  const words = new Uint32Array(64);
  const word = (i: number): number => words[i] ?? 0;
  for (let i = 0; i < 16; i++) words[i] = message.getUint32(at + i * 4);
  for (let i = 16; i < 64; i++) {
    const [near, far] = [word(i - 2), word(i - 15)];
    const ofFar = rotateRight(far, 7) ^ rotateRight(far, 18) ^ (far >>> 3);
    const ofNear = rotateRight(near, 17) ^ rotateRight(near, 19) ^ (near >>> 10);
    words[i] = word(i - 16) + ofFar + word(i - 7) + ofNear;
  }
  return words;
}

function mixState(state: readonly number[], added: number): number[] {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  const choice = (e & f) ^ (~e & g);
  const majority = (a & b) ^ (a & c) ^ (b & c);
  const one = h + (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)) + choice + added;
  const two = (rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)) + majority;
  return [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
}
