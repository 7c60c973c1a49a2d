/** Maximum arguments of `String.fromCharCode`, because they are on the stack. */
const ARGUMENTS_MAX = 8192;

/** Encodes base64. Scripts run this code in Node, which has no `Uint8Array.toBase64`. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += ARGUMENTS_MAX) {
    binary += String.fromCharCode(...bytes.subarray(at, at + ARGUMENTS_MAX));
  }
  return btoa(binary);
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Returns a character per byte, or null if the text isn't base64. */
export function decodeBase64(text: string): string | null {
  try {
    return atob(text);
  } catch {
    return null;
  }
}
