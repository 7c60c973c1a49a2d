import { invalid, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { sha256Hex } from "./hash.ts";

/** How long a request with an Idempotency-Key is known by it, from its admission on. */
export const IDEMPOTENCY_MS = 86_400_000;

/** What tells a repeated request from a new one: two hashes, from which neither part can be read back. */
export type Idempotency = {
  /** Of the calling API key and its Idempotency-Key. */
  readonly name: string;
  /** Of organization, path and body. */
  readonly body: string;
};

/** The request that an Idempotency-Key came with; `bytes` is its body as it arrived. */
export type NamedRequest = {
  readonly keyId: string;
  readonly orgId: string;
  readonly path: string;
  readonly bytes: Uint8Array;
};

const HEADER = "Idempotency-Key";
const VISIBLE = /^[\x21-\x7e]{1,255}$/;

/**
 * The header's value, or null without one. Not 1 to 255 visible ASCII characters: 400. So are two
 * headers, which arrive as one value with a space in it.
 */
export function readIdempotencyKey(header: string | undefined): Result<string | null> {
  if (header === undefined) return success(null);
  if (VISIBLE.test(header)) return success(header);
  return invalid(
    `${HEADER} must be sent once, as 1 to 255 visible ASCII characters without spaces.`,
    HEADER,
  );
}

/** Hashes what identifies a request. The body is hashed where it lies: no copy of it is made. */
export async function idempotencyOf(key: string, request: NamedRequest): Promise<Idempotency> {
  const { keyId, orgId, path, bytes } = request;
  const [name, content] = await Promise.all([sha256Hex(`${keyId} ${key}`), sha256Hex(bytes)]);
  return { name, body: await sha256Hex(`${orgId} ${path} ${content}`) };
}
