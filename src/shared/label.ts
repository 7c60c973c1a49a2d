import * as z from "zod/mini";

// Without \p{Cc}, which few OpenAPI tools support.
// oxlint-disable-next-line no-control-regex -- control characters are what it forbids
const NO_CONTROL = /^[^\u0000-\u001f\u007f-\u009f]*$/;

/** A display name: 1 to `most` characters, no control characters, not only spaces. */
export function label(most: number): z.ZodMiniString {
  return z
    .string()
    .check(
      z.maxLength(most),
      z.regex(NO_CONTROL, "must not contain control characters"),
      z.regex(/\S/, "must not be empty"),
    );
}
