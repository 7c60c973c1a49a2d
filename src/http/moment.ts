import * as z from "zod/mini";

/** A moment in a query or a body: a date or a date and time in ISO 8601, as Unix ms. */
export const moment = z.pipe(
  z.string("must be given once").check(
    z.regex(
      /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/,
      "must be a time as 2026-11-22T10:00:00Z, or a date",
    ),
    z.refine((text) => !Number.isNaN(Date.parse(text)), "must be a time that exists"),
  ),
  z.transform((text) => Date.parse(text)),
);
