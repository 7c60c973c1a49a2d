import { invalid, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { sha256Hex } from "./hash.ts";

/** Ms that an Idempotency-Key identifies a request, from its admission. */
export const IDEMPOTENCY_MS = 86_400_000;

/** Two hashes that identify a repeated request. Neither reveals its input. */
export type Idempotency = {
  readonly name: string;
  readonly body: string;
};

/** A request with an Idempotency-Key. `bytes` is its body as received. */
export type NamedRequest = {
  readonly keyId: string;
  readonly orgId: string;
  readonly path: string;
  readonly bytes: Uint8Array;
};

const HEADER = "Idempotency-Key";
const VISIBLE = /^[\x21-\x7e]{1,255}$/;

/**
 * Returns the header's value, or null without one. Returns 400 unless it has 1 to 255 visible ASCII
 * characters; two headers arrive as one value with a space.
 */
export function readIdempotencyKey(header: string | undefined): Result<string | null> {
  if (header === undefined) return success(null);
  if (VISIBLE.test(header)) return success(header);
  return invalid(
    `${HEADER} must be sent once, as 1 to 255 visible ASCII characters without spaces.`,
    HEADER,
  );
}

/** Hashes the identity of a request without copying the body. */
export async function idempotencyOf(key: string, request: NamedRequest): Promise<Idempotency> {
  const { keyId, orgId, path, bytes } = request;
  const [name, content] = await Promise.all([sha256Hex(`${keyId} ${key}`), sha256Hex(bytes)]);
  return { name, body: await sha256Hex(`${orgId} ${path} ${content}`) };
}
