import { NO_USAGE } from "../../../shared/usage.ts";
import { objectOf } from "../../core/json-value.ts";
import { objectReader } from "../../core/shape.ts";
import { tokenCount } from "../../core/token-count.ts";
import type { CallProtocol } from "./profile.ts";

const readCounts = objectReader({
  usage_info: objectReader({ pages_processed: tokenCount, doc_size_bytes: tokenCount }),
});

export const OCR_CALL: CallProtocol<"ocr"> = {
  path: "/ocr",
  request: ({ body, upstreamId }) => ({ ...body, model: upstreamId }),
  convertResponse: (raw) => {
    const { pages } = raw;
    if (!Array.isArray(pages) || !pages.every((page) => isPage(page))) return null;
    const { pages_processed: page, doc_size_bytes } = readCounts(raw).usage_info;
    const isCounted = page !== null && (page > 0 || pages.length === 0);
    return { body: { pages, doc_size_bytes }, usage: isCounted ? { ...NO_USAGE, page } : null };
  },
};

function isPage(page: unknown): boolean {
  const { markdown } = objectOf(page);
  return typeof markdown === "string";
}
