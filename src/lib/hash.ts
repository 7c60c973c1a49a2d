import { BASE62 } from "./id.ts";

/** FNV-1a over a text's UTF-16 units: 32 bits. Not for secrets. */
export function fnv1a(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** 32 well-mixed bits of a text: `fnv1a`, then the finaliser of MurmurHash3. Not for secrets. */
export function hash32(text: string, seed = 0): number {
  let hash = fnv1a(text, seed);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** `length` base62 characters that depend on the text alone: ids that are the same on every run. */
export function hashedBase62(text: string, length: number): string {
  let out = "";
  for (let i = 0; i < length; i++) out += BASE62.charAt(hash32(text, i + 1) % 62);
  return out;
}
