import * as z from "zod/mini";

// Uses a range, because few OpenAPI tools support \p{Cc}.
// oxlint-disable-next-line no-control-regex -- it must reject control characters
const NO_CONTROL = /^[^\u0000-\u001f\u007f-\u009f]*$/;

/**
 * Returns the schema of a display name: 1 to `lengthMax` characters, not only spaces, without
 * control characters.
 */
export function labelSchema(lengthMax: number): z.ZodMiniString {
  return z
    .string()
    .check(
      z.maxLength(lengthMax),
      z.regex(NO_CONTROL, "must not contain control characters"),
      z.regex(/\S/, "must not be empty"),
    );
}
