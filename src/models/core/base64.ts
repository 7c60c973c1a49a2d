/** `String.fromCharCode` takes its bytes as arguments, and stacks are finite. */
const ARGUMENTS_MAX = 8192;

/** Bytes as base64 (RFC 4648 section 4). `Uint8Array.toBase64` is not in Node, where scripts run adapters. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += ARGUMENTS_MAX) {
    binary += String.fromCharCode(...bytes.subarray(at, at + ARGUMENTS_MAX));
  }
  return btoa(binary);
}

/** Bytes as base64 without padding, fit for URLs (RFC 4648 section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The bytes of a base64 text; throws when it is none. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
