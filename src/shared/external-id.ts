import { utf8Bytes } from "./tokens.ts";

const EXTERNAL_ID_BYTES_MAX = 256;

/** Control characters (C0, DEL, C1) and Unicode line separators, which would split log lines. */
// oxlint-disable-next-line no-control-regex -- it must match control characters
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/**
 * Returns the problem of an external ID, or null. A valid ID has 1 to 256 UTF-8 bytes and no
 * control characters, and isn't "." or "..".
 */
export function findExternalIdProblem(value: string): string | null {
  if (value === "") return "must not be empty";
  const tooLong = utf8Bytes(value) > EXTERNAL_ID_BYTES_MAX;
  if (tooLong) return `must be at most ${EXTERNAL_ID_BYTES_MAX} bytes`;
  if (FORBIDDEN.test(value)) return "must not contain control characters";
  if (!value.isWellFormed()) return "must be well-formed Unicode";
  if (value === "." || value === "..") return 'must not be "." or ".."';
  return null;
}
