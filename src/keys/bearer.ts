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

/** Begins every credential of ours. */
const OURS = "svc_";

/**
 * The credential of a request: `Authorization: Bearer`, or `x-api-key` as clients of the Messages dialect send
 * it. An empty `x-api-key` is none. Of two that differ, the one of ours counts; two of ours that differ
 * are none: which of them counts must not depend on who reads.
 */
export function credentialOf(authorization: string | null, apiKey: string | null): string | null {
  const bearer = bearerToken(authorization);
  const key = apiKey?.trim() ?? "";
  if (key === "" || key === bearer) return bearer;
  const isKeyOurs = key.startsWith(OURS) && key.length <= HEADER_CHARACTERS_MAX;
  if (bearer?.startsWith(OURS) !== true) return isKeyOurs ? key : (bearer ?? null);
  return key.startsWith(OURS) ? null : bearer;
}
