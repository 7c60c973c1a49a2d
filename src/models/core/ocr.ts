import * as z from "zod/mini";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { externalIdSchema } from "./core-request.ts";
import { imageUrlSchema } from "./data-url.ts";
import { parseInput } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest } from "./input-kind.ts";

const PAGES_MAX = 1000;
const RANGES_LENGTH_MAX = 4096;
const RANGES = /^\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*$/;

const url = imageUrlSchema.check(z.minLength(1));
const number = z.int().check(z.minimum(0));
const pageNumber = number.check(z.maximum(99_999));
export const ocrBodySchema = z.strictObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  document: z.discriminatedUnion("type", [
    z.strictObject({
      type: z.literal("document_url"),
      document_url: url,
      document_name: z.optional(z.string().check(z.maxLength(256))),
    }),
    z.strictObject({
      type: z.literal("image_url"),
      image_url: z.union([url, z.strictObject({ url })]),
    }),
  ]),
  pages: z.optional(
    z.union([
      pageNumber,
      z.array(pageNumber).check(z.minLength(1), z.maxLength(PAGES_MAX)),
      z
        .string()
        .check(
          z.maxLength(RANGES_LENGTH_MAX),
          z.regex(RANGES, "must be page numbers such as '0-3,5'"),
        ),
    ]),
  ),
  include_image_base64: z.optional(z.boolean()),
  image_limit: z.optional(number),
  image_min_size: z.optional(number),
  include_blocks: z.optional(z.boolean()),
  user: z.optional(externalIdSchema),
});

export type OcrBody = Omit<z.infer<typeof ocrBodySchema>, "pages" | "user"> & {
  readonly pages: readonly number[];
};

export function parseOcrRequest(value: object): Result<ParsedInputRequest<OcrBody>> {
  const parsed = parseInput(ocrBodySchema, value);
  if (!parsed.ok) return parsed;
  const { pages: requestedPages, ...rest } = parsed.value.body;
  if (requestedPages === undefined && rest.document.type === "document_url") {
    return invalid("'pages' is missing. List the pages to read, such as '0-3'.", "pages");
  }
  const pages = pageNumbers(requestedPages ?? 0);
  if (pages.length === 0 || pages.length > PAGES_MAX) {
    return invalid(`'pages' must list 1 to ${PAGES_MAX} pages.`, "pages");
  }
  return success({ body: { ...rest, pages }, user: parsed.value.user });
}

function pageNumbers(pages: number | readonly number[] | string): readonly number[] {
  if (typeof pages !== "string") return [...new Set([pages].flat())];
  const numbers = new Set<number>();
  for (const range of pages.split(",")) {
    const [first = 0, last = first] = range.split("-").map(Number);
    for (let page = first; page <= last && numbers.size <= PAGES_MAX; page++) numbers.add(page);
  }
  return [...numbers];
}

/**
 * The rules of OCR, which is billed by the page. Requested pages beyond the document aren't
 * charged.
 */
export const OCR_REQUEST_RULES: InputKindRules<OcrBody, "page"> = {
  size: ({ pages }) => ({ bound: 0, estimate: 0, likely: 0, units: { page: pages.length } }),
  needs: () => [],
  sizeAdvice: { advice: "Request fewer pages or images.", param: "pages" },
};
