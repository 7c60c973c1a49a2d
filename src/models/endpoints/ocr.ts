import { costFields } from "../../shared/money.ts";
import { parseOcrRequest } from "../core/ocr.ts";
import { inputEndpoint } from "./input-endpoint.ts";

export const ocrEndpoint = inputEndpoint({
  name: "ocr",
  input: "document",
  kind: "ocr",
  parse: parseOcrRequest,
  request: ({ body }) => ({ kind: "ocr", body }),
  reply: () => ({
    kind: "json",
    json: ({ pages, doc_size_bytes }, { model, usage: { page = 0 }, costMicro }) => ({
      pages,
      model,
      usage_info: { pages_processed: page, doc_size_bytes },
      usage: { pages: page, ...costFields(costMicro) },
    }),
  }),
});
