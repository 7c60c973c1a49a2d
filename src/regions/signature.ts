import type { PeerSecret } from "../shared/config/config.ts";
import { importHmacKey, hmacSha256, verifyHmac } from "../shared/hmac.ts";
import type { Region } from "../shared/regions.ts";

/**
 * HTTP Message Signatures (RFC 9421). Accepts only label `turnpike`, algorithm hmac-sha256 (3.3.3),
 * and these components and parameters in this order.
 */
const LABEL = "turnpike";
const COMPONENTS = [
  "@method",
  "@authority",
  "@path",
  "@query",
  "content-digest",
  "x-request-id",
] as const;
const COVERED_COMPONENTS = `(${COMPONENTS.map((name) => `"${name}"`).join(" ")})`;

const LIFETIME_S = 30;

const KEY_ID_CHARACTERS = 12;
/** A secret's ID: the sender's region, a colon and 12 base64url characters. */
const KEY_ID_PATTERN = `[a-z]{2,8}:[0-9A-Za-z_-]{${KEY_ID_CHARACTERS}}`;
const REQUEST_ID = /^[0-9A-Za-z_-]{1,100}$/;
/**
 * A hash: 32 bytes in base64. The last character ends in two zero bits, so each hash has one
 * encoding.
 */
const BASE64_PATTERN = "[0-9A-Za-z+/]{42}[AEIMQUYcgkosw048]=";
const DIGEST = new RegExp(`^sha-256=:${BASE64_PATTERN}:$`);
const SIGNATURE = new RegExp(`^${LABEL}=:(${BASE64_PATTERN}):$`);
const SIGNATURE_INPUT = new RegExp(
  `^${LABEL}=(${escapeRegExp(COVERED_COMPONENTS)};created=([1-9][0-9]{0,11});expires=([1-9][0-9]{0,11});keyid="(${KEY_ID_PATTERN})";alg="hmac-sha256")$`,
);

type SignedParts = {
  readonly method: string;
  readonly url: string;
  readonly contentDigest: string;
  readonly requestId: string;
};

type Verdict =
  | { readonly ok: true; readonly sender: Region; readonly contentDigest: string }
  | { readonly ok: false; readonly reason: string };

export async function createSignatureHeaders(
  parts: SignedParts,
  secret: PeerSecret,
  nowMs: number,
): Promise<Record<string, string>> {
  const created = Math.floor(nowMs / 1000);
  const keyId = await keyIdOf(secret);
  const parameters = `${COVERED_COMPONENTS};created=${created};expires=${created + LIFETIME_S};keyid="${keyId}";alg="hmac-sha256"`;
  const base = signatureBase(componentValues(parts), parameters);
  const signature = await hmacSha256(await hmacKeyOf(secret), base);
  return {
    "content-digest": parts.contentDigest,
    "x-request-id": parts.requestId,
    "signature-input": `${LABEL}=${parameters}`,
    signature: `${LABEL}=:${signature.toBase64()}:`,
  };
}

/**
 * Verifies the signature headers. The caller must compare the body with `contentDigest`. Never
 * throws.
 */
export async function verifySignature(
  request: { readonly method: string; readonly url: string; readonly headers: Headers },
  accepted: readonly PeerSecret[],
  nowMs: number,
): Promise<Verdict> {
  const { method, url, headers } = request;
  const signatureClaim = readClaim(headers);
  if (signatureClaim === null) return rejected("no signature of this shape");
  const { parameters, created, expires, keyId, signature, contentDigest, requestId } =
    signatureClaim;
  if (expires < created || expires - created > LIFETIME_S) return rejected("wrong lifetime");
  if (nowMs < (created - LIFETIME_S) * 1000) return rejected("signed in the future");
  if (nowMs > expires * 1000) return rejected("signed too long ago");
  const secret = await secretOf(keyId, accepted);
  if (secret === null) return rejected("unknown keyid");
  const base = signatureBase(
    componentValues({ method, url, contentDigest, requestId }),
    parameters,
  );
  const isValid = await verifyHmac(await hmacKeyOf(secret), signature, base);
  return isValid ? { ok: true, sender: secret.sender, contentDigest } : rejected("wrong signature");
}

export async function contentDigestOf(body: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  return `sha-256=:${digest.toBase64()}:`;
}

/** Returns the text to sign: one line per component, then the parameters (RFC 9421, 2.5). */
export function signatureBase(
  components: readonly (readonly [name: string, value: string])[],
  parameters: string,
): Uint8Array {
  const lines = components.map(([name, value]) => `"${name}": ${value}\n`);
  return encoder.encode(`${lines.join("")}"@signature-params": ${parameters}`);
}

/** Returns the values of the components (RFC 9421, 2.2). An empty query is `?` (2.2.7). */
function componentValues(parts: SignedParts): [name: string, value: string][] {
  const { host, pathname, query } = parseTarget(parts.url);
  const values = [parts.method, host, pathname, query, parts.contentDigest, parts.requestId];
  return COMPONENTS.map((name, i) => [name, values[i] ?? ""]);
}

type ParsedUrl = { readonly host: string; readonly pathname: string; readonly query: string };
const parsedUrls = new Map<string, ParsedUrl>();
const PARSED_URLS_MAX = 16;

function parseTarget(url: string): ParsedUrl {
  const known = parsedUrls.get(url);
  if (known !== undefined) return known;
  const { host, pathname, search } = new URL(url);
  const target = { host, pathname, query: search === "" ? "?" : search };
  if (parsedUrls.size >= PARSED_URLS_MAX) parsedUrls.clear();
  parsedUrls.set(url, target);
  return target;
}

type SignatureClaim = {
  readonly parameters: string;
  readonly created: number;
  readonly expires: number;
  readonly keyId: string;
  readonly signature: Uint8Array;
  readonly contentDigest: string;
  readonly requestId: string;
};

/** Parses the signature headers. The joined values of repeated headers never match. */
function readClaim(headers: Headers): SignatureClaim | null {
  const input = SIGNATURE_INPUT.exec(headers.get("signature-input") ?? "");
  const [, base64] = SIGNATURE.exec(headers.get("signature") ?? "") ?? [];
  const contentDigest = headers.get("content-digest") ?? "";
  const requestId = headers.get("x-request-id") ?? "";
  if (input === null || base64 === undefined) return null;
  if (!DIGEST.test(contentDigest) || !REQUEST_ID.test(requestId)) return null;
  const [, parameters = "", created, expires, keyId = ""] = input;
  return {
    parameters,
    created: Number(created),
    expires: Number(expires),
    keyId,
    signature: Uint8Array.fromBase64(base64),
    contentDigest,
    requestId,
  };
}

async function secretOf(
  keyId: string,
  accepted: readonly PeerSecret[],
): Promise<PeerSecret | null> {
  const keyIds = await Promise.all(accepted.map(keyIdOf));
  return accepted[keyIds.indexOf(keyId)] ?? null;
}

function rejected(reason: string): Verdict {
  return { ok: false, reason };
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[()]/g, String.raw`\$&`);
}

const encoder = new TextEncoder();

type ImportedKey = { readonly key: CryptoKey; readonly keyId: string };
/**
 * Imported secrets. Contains no promises, because in Workers a request can't await another
 * request's I/O.
 */
const importedKeys = new WeakMap<PeerSecret, ImportedKey>();

async function hmacKeyOf(secret: PeerSecret): Promise<CryptoKey> {
  return (await importKey(secret)).key;
}

/**
 * Returns a secret's ID: the sending region and 72 bits of an HMAC over fixed text. It doesn't
 * reveal the secret.
 */
async function keyIdOf(secret: PeerSecret): Promise<string> {
  return (await importKey(secret)).keyId;
}

async function importKey(secret: PeerSecret): Promise<ImportedKey> {
  const known = importedKeys.get(secret);
  if (known !== undefined) return known;
  const key = await importHmacKey(secret.secret);
  const fingerprint = await hmacSha256(key, "keyid");
  const text = fingerprint.toBase64({ alphabet: "base64url" }).slice(0, KEY_ID_CHARACTERS);
  const imported = { key, keyId: `${secret.sender}:${text}` };
  importedKeys.set(secret, imported);
  return imported;
}
