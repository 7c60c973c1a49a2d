const HMAC = { name: "HMAC", hash: "SHA-256" };
const encoder = new TextEncoder();

type Bytes = ArrayBuffer | Uint8Array;
export type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

export function importHmacKey(secret: string | Bytes): Promise<HmacKey> {
  return crypto.subtle.importKey("raw", bytesOf(secret), HMAC, false, ["sign", "verify"]);
}

export async function hmacSha256(key: HmacKey, message: string | Bytes): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, bytesOf(message)));
}

export function verifyHmac(key: HmacKey, tag: Bytes, message: string | Bytes): Promise<boolean> {
  return crypto.subtle.verify("HMAC", key, tag, bytesOf(message));
}

function bytesOf(input: string | Bytes): Bytes {
  return typeof input === "string" ? encoder.encode(input) : input;
}
