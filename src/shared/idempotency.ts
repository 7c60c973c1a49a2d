import { invalid, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { sha256Hex } from "./hash.ts";

export const IDEMPOTENCY_RETENTION_MS = 86_400_000;

export type IdempotencyHashes = {
  readonly name: string;
  readonly body: string;
};

export type IdempotentRequest = {
  readonly keyId: string;
  readonly orgId: string;
  readonly path: string;
  readonly bytes: Uint8Array;
};

const HEADER = "Idempotency-Key";
const VISIBLE = /^[\x21-\x7e]{1,255}$/;

/**
 * Returns the header's value, or null. Fails with 400 unless it has 1 to 255 visible ASCII
 * characters. A space means two joined headers.
 */
export function readIdempotencyKey(header: string | undefined): Result<string | null> {
  if (header === undefined) return success(null);
  if (VISIBLE.test(header)) return success(header);
  return invalid(
    `${HEADER} must be sent once, as 1 to 255 visible ASCII characters without spaces.`,
    HEADER,
  );
}

export async function hashIdempotentRequest(
  key: string,
  request: IdempotentRequest,
): Promise<IdempotencyHashes> {
  const { keyId, orgId, path, bytes } = request;
  const [name, content] = await Promise.all([sha256Hex(`${keyId} ${key}`), sha256Hex(bytes)]);
  return { name, body: await sha256Hex(`${orgId} ${path} ${content}`) };
}
