import * as z from "zod/mini";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { utf8Bytes } from "../../shared/tokens.ts";
import type { Model } from "../catalog/model.ts";
import { externalIdSchema } from "./core-request.ts";
import { parseInput } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest, RouteNeed } from "./input-kind.ts";
import { PromptTokenCounter } from "./prompt-size.ts";

const DOCUMENTS_MAX = 1000;
const TOKENS_PER_DOCUMENT = 4096;
const PAIR_OVERHEAD = 8;
/** Maximum documents per search unit. Each piece of a long document counts as a document. */
const PIECES_PER_UNIT = 100;
/** Maximum tokens of a document's piece, including the query. Each byte counts as a token. */
const PIECE_TOKENS = 510;

const text = z.string().check(z.minLength(1));
const document = z.union([z.string(), z.strictObject({ text: z.string() })]);
export const rerankBodySchema = z.strictObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  query: text,
  documents: z.array(document).check(z.minLength(1), z.maxLength(DOCUMENTS_MAX)),
  top_n: z.optional(z.int().check(z.minimum(1))),
  top_k: z.optional(z.int().check(z.minimum(1))),
  return_documents: z.optional(z.boolean()),
  max_tokens_per_doc: z.optional(z.int().check(z.minimum(1), z.maximum(1_000_000))),
  user: z.optional(externalIdSchema),
});

export type RerankBody = {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly string[];
  readonly top_n: number;
  readonly max_tokens_per_doc: number;
};

type ParsedRerank = ParsedInputRequest<RerankBody> & { readonly returnsDocuments: boolean };

export function parseRerankRequest(value: object): Result<ParsedRerank> {
  const parsed = parseInput(rerankBodySchema, value);
  if (!parsed.ok) return parsed;
  const { model, query, top_n, top_k, return_documents, ...rest } = parsed.value.body;
  if (top_n !== undefined && top_k !== undefined && top_n !== top_k) {
    return invalid("Send 'top_n' or 'top_k', not both.", "top_k");
  }
  const documents = rest.documents.map((one) => (typeof one === "string" ? one : one.text));
  const body = {
    model,
    query,
    documents,
    top_n: Math.min(top_n ?? top_k ?? documents.length, documents.length),
    max_tokens_per_doc: rest.max_tokens_per_doc ?? TOKENS_PER_DOCUMENT,
  };
  return success({ body, user: parsed.value.user, returnsDocuments: return_documents === true });
}

export const RERANK_REQUEST_RULES: InputKindRules<RerankBody, "search_unit"> = {
  size: (body, model) => ({ ...pairsSize(body, model), units: { search_unit: searchUnits(body) } }),
  needs: rerankNeeds,
  sizeAdvice: { advice: "Send fewer documents.", param: "documents" },
};

/** Returns the size of all documents, plus the query once per document, as providers count it. */
function pairsSize({ query, documents }: RerankBody, model: Model) {
  const tally = new PromptTokenCounter(model);
  for (const one of documents) tally.addText(one);
  const queryCounter = new PromptTokenCounter(model);
  queryCounter.addText(query);
  const [all, each] = [tally.size(), queryCounter.size()];
  const pairs = documents.length;
  const totalOf = (of: "bound" | "estimate" | "likely"): number =>
    all[of] + (each[of] + PAIR_OVERHEAD) * pairs;
  return { bound: totalOf("bound"), estimate: totalOf("bound"), likely: totalOf("likely") };
}

/**
 * Returns the search units. Even if the query is long, at least half of PIECE_TOKENS is left for
 * the document.
 */
function searchUnits({ query, documents, max_tokens_per_doc: tokensMax }: RerankBody): number {
  const documentTokens = Math.max(PIECE_TOKENS / 2, PIECE_TOKENS - utf8Bytes(query));
  const pieces = documents.reduce(
    (sum, one) =>
      sum + Math.max(1, Math.ceil(Math.min(utf8Bytes(one), tokensMax) / documentTokens)),
    0,
  );
  return Math.ceil(pieces / PIECES_PER_UNIT);
}

function rerankNeeds({ documents }: RerankBody): readonly RouteNeed[] {
  const { length } = documents;
  return [
    {
      param: "documents",
      capability: `rank ${length} documents at once`,
      isMetBy: ({ limits }) => length <= (limits?.inputs ?? length),
    },
  ];
}
