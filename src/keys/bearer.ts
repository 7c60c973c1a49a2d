import { SESSION_TOKEN, SESSION_TOKEN_MAX } from "./session-token.ts";

const HEADER_CHARACTERS_MAX = 128;

/**
 * The token of `Authorization: Bearer <token>`, or null. The scheme may be in any case (RFC 9110,
 * 11.1), exactly one space follows. Two headers arrive joined by a comma, so a comma is refused:
 * which of them counts must not depend on who reads.
 */
export function bearerToken(authorization: string | null): string | null {
  if (authorization === null || authorization.length > SESSION_TOKEN_MAX + SCHEME) return null;
  const token = /^bearer ([^\s,]+)$/i.exec(authorization)?.[1] ?? null;
  return token !== null && authorization.length > HEADER_CHARACTERS_MAX && !isSession(token)
    ? null
    : token;
}

const SCHEME = "bearer ".length;

/** Only a session's token is so long: its terms stand in it. */
function isSession(token: string): boolean {
  return token.startsWith(SESSION_TOKEN);
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
  const longest = isSession(key) ? SESSION_TOKEN_MAX : HEADER_CHARACTERS_MAX;
  const isKeyOurs = key.startsWith(OURS) && key.length <= longest;
  if (bearer?.startsWith(OURS) !== true) return isKeyOurs ? key : (bearer ?? null);
  return key.startsWith(OURS) ? null : bearer;
}
