const HEADER_CHARACTERS_MAX = 128;

/**
 * The token of `Authorization: Bearer <token>`, or null. The scheme may be in any case (RFC 9110,
 * 11.1), exactly one space follows. Two headers arrive joined by a comma, so a comma is refused:
 * which of them counts must not depend on who reads.
 */
export function bearerToken(authorization: string | null): string | null {
  if (authorization === null || authorization.length > HEADER_CHARACTERS_MAX) return null;
  return /^bearer ([^\s,]+)$/i.exec(authorization)?.[1] ?? null;
}
