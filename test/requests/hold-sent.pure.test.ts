import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { Catalog } from "../../src/models/catalog/catalog.ts";
import type { Model, Route } from "../../src/models/catalog/model.ts";
import { getPriceForPrompt } from "../../src/models/catalog/price.ts";
import {
  computeRequestBounds,
  supportsNativeRequest,
} from "../../src/models/requests/bound-request.ts";
import { SALE_TERMS } from "../fixtures/bound-request.ts";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import { completionsEndpoint } from "../../src/models/endpoints/completions.ts";
import type { ParsedRequest, EndpointAdapter } from "../../src/models/core/endpoint-adapter.ts";
import { responsesEndpoint } from "../../src/models/endpoints/responses.ts";
import { computeAffordableCap } from "../../src/models/requests/hold-bounds.ts";
import type { PaidRequest } from "../../src/models/requests/paid-request.ts";
import { micros } from "../../src/shared/money.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import { PDF_DATA_URL_PREFIX } from "../../src/models/core/core-request.ts";
import { sendPromptsSeparately } from "../../src/models/core/separate-prompts.ts";
import type { ProviderCall } from "../../src/models/core/provider.ts";
import { effortFor } from "../effort.ts";
import { IMAGE_DATA, IMAGE_URL } from "../fixtures/any-of-schema.ts";
import { CALL_KINDS } from "../../src/shared/kinds.ts";
import { ENDPOINT_BODIES, PDF_DATA, PDF_PAGES } from "../fixtures/endpoint-bodies.ts";
import { REQUEST_FORMATS } from "../fixtures/request-formats.ts";
import type { RequestFormat } from "../fixtures/request-formats.ts";
import { MODEL } from "./run-fixture.ts";
import { computeCost } from "../../src/shared/cost.ts";

const CASES = effortFor(150, 10_000);
const IMAGE_TOKENS = 1445;
const PAGE_TOKENS = 3000 + IMAGE_TOKENS;

/** Keys and values that a protocol writes itself, each at most once per part. */
const OWN = new Set(
  `type text role content user assistant system developer tool model message messages input output parts part
  input_text output_text input_image image_url url detail auto low high name id index function function_call
  function_call_output custom custom_tool_call custom_tool_call_output call_id arguments tool_calls tool_call_id
  tool_use tool_result tool_use_id toolUse toolUseId toolResult functionCall functionResponse response args
  functionDeclarations parametersJsonSchema parameters input_schema inputSchema json toolSpec toolConfig tools
  toolChoice tool_choice properties object additionalProperties description strict required string schema
  json_schema json_object response_format format output_config responseJsonSchema responseMimeType application/json
  thinking thinkingConfig reasoning_content reasoning signature redacted_thinking data summary encrypted_content
  thoughtSignature skip_thought_signature_validator refusal source base64 media_type image/png image/jpeg image/gif
  image/webp image inlineData mimeType bytes document application/pdf text/plain title context citations
  cache_control ephemeral ttl 5m 1h contents systemInstruction max_tokens maxTokens maxOutputTokens
  max_completion_tokens max_output_tokens stream_options include_usage include_obfuscation stream service_tier
  default standard_only store include reasoning.encrypted_content effort adaptive display summarized enabled disabled
  budget_tokens generationConfig inferenceConfig additionalModelRequestFields temperature top_p topP
  functionCallingConfig mode AUTO ANY NONE VALIDATED any none true false null (empty) Done. Hello. {} toolconfig
  texts embedding_types float input_type search_document truncate requests instances outputDimensionality
  encoding_format dimensions models/m normalize inputText options returnRawResponse inputs
  toolConfig gateway prompt_cache_key prompt_cache_retention safety_identifier presence_penalty frequency_penalty seed
  random_seed stop stop_sequences stopSequences k p n logprobs top_logprobs logit_bias candidateCount presencePenalty
  frequencyPenalty min_p top_k topK repetition_penalty thinkingLevel HIGH LOW MEDIUM MINIMAL includeThoughts
  thinkingBudget verbosity parallel_tool_calls disable_parallel_tool_use reasoning_effort minimal medium xhigh max
  file input_file filename file_data document.pdf truncation reasoning namespace instances content autoTruncate output_dimension embedding text_type search_query query documents top_n return_documents
  max_tokens_per_doc prompt size quality background opaque transparent output_format png jpeg webp output_compression moderation resolution 1k 1K 2K 4K
  b64_json aspect_ratio responseModalities TEXT IMAGE imageConfig aspectRatio imageSize 1:1 3:2 16:9 1024x1024 1536x1024 3840x2160`
    .split(/\s+/)
    .filter((word) => word !== ""),
);

/**
 * Returns the bytes of the client's text in a provider's request. Binary data counts by the
 * provider's rule.
 */
function textBytesIn(value: unknown): number {
  if (typeof value === "string") return textBytes(value);
  if (typeof value === "number") return String(value).length;
  if (typeof value !== "object" || value === null) return 0;
  let bytes = 0;
  for (const [key, inner] of Object.entries(value)) {
    const isOwn = Array.isArray(value) || OWN.has(key);
    const isSetting = OWN.has(key) && typeof inner === "number";
    bytes += (isOwn ? 0 : bytesOf(key)) + (isSetting ? 0 : textBytesIn(inner));
  }
  return bytes;
}

function textBytes(text: string): number {
  if (text.includes(IMAGE_DATA) || text === IMAGE_URL || text.includes(PDF_DATA)) return 0;
  return OWN.has(text) || text.startsWith("models/") ? 0 : bytesOf(text);
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** Returns the number of occurrences of a text in another one. */
const countOf = (text: string, part: string): number => text.split(part).length - 1;

/** Replaces the network by one that records requests and never responds. */
function taken(): string[] {
  const bodies: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init) => {
    const body = await new Response(init?.body ?? null).text();
    if (body !== "") bodies.push(body); // an empty body is an image download
    throw new TypeError("connection refused");
  });
  return bodies;
}

function modelOf({ id, upstreamId, kind }: RequestFormat, more: Partial<Route>): Model {
  const routes = [{ ...MODEL.routes[0], provider: id, upstreamId, ...more }] as Model["routes"];
  const size = { context: 1_000_000, imageTokens: IMAGE_TOKENS, estimateFactor: 1.15 };
  const abilities = ["tools", "vision", "reasoning", "dimensions"] as const;
  return { ...MODEL, ...size, id, kind, abilities, routes };
}

function boundAt(
  parsed: ParsedRequest,
  format: RequestFormat,
  more: Partial<Route> = {},
): PaidRequest | null {
  const catalog: Catalog = {
    span: { from: -Infinity, until: Infinity },
    models: new Map([[format.id, modelOf(format, more)]]),
    aliases: new Map(),
    bareNames: new Map(),
    region: "eu",
  };
  const body = { ...parsed.request.body, model: format.id };
  const request = { ...parsed.request, body } as ParsedRequest["request"];
  const providers = new Map([[format.id, format.provider]]);
  const bound = computeRequestBounds({ ...parsed, request }, { ...SALE_TERMS, catalog, providers });
  return bound.ok ? bound.value : null;
}

/**
 * Returns the bytes that a protocol sends for a request, and the tokens of a host that bills four
 * bytes as one. Null if the request is rejected.
 */
async function sentFor(
  request: PaidRequest,
  { provider, upstreamId }: RequestFormat,
  bodies: string[],
): Promise<{ readonly bytes: number; readonly tokens: number } | null> {
  bodies.length = 0;
  const [route] = request.routes;
  const isNative = route !== undefined && supportsNativeRequest(provider, route, request.native);
  const call = {
    ...request.core,
    upstreamId,
    native: isNative && request.native !== null ? request.native : undefined,
    stream: false,
    cap: request.cap?.whole,
    signal: AbortSignal.timeout(60_000),
  } as ProviderCall;
  const isApart = call.kind === "chat" && call.apart === true;
  const answer = await (isApart ? sendPromptsSeparately(provider, call) : provider.send(call));
  // uses the sandbox's own count
  if (answer.kind === "json") return { bytes: 0, tokens: answer.usage?.input ?? 0 };
  if (bodies.length === 0) return null;
  const texts = [...new Set(bodies)];
  const all = texts.join("");
  const images = (countOf(all, IMAGE_DATA) + countOf(all, IMAGE_URL)) * IMAGE_TOKENS;
  const binary = images + countOf(all, PDF_DATA) * PDF_PAGES * PAGE_TOKENS;
  let bytes = 0;
  for (const text of texts) bytes += textBytesIn({ ...(JSON.parse(text) as object), model: "" });
  return { bytes: bytes + binary, tokens: Math.ceil(bytes / 4) + binary };
}

/** Checks that the minimum hold covers a host that bills a token per four bytes. */
function expectPaid(request: PaidRequest, input: number, at: number): void {
  const { bounds, cap, prompt, routes } = request;
  const [route] = routes;
  if (route === undefined) throw new Error("no route");
  const granted = micros(bounds.least + Math.floor((bounds.most - bounds.least) * at));
  const sent = cap === null ? 0 : (computeAffordableCap(route, prompt, cap, granted) ?? Number.NaN);
  const output = sent * (cap?.choices ?? 1);
  const cost = computeCost(getPriceForPrompt(route, input), { ...NO_USAGE, input, output });
  expect(cost, "absorbed").toBeLessThanOrEqual(granted);
}

const REFUSES = { header: () => undefined, query: () => undefined };

function parsedBy(endpoint: EndpointAdapter, body: object): ParsedRequest | null {
  const parsed = endpoint.parse(body, REFUSES);
  return parsed.ok ? parsed.value : null;
}

const COUNTED = ENDPOINT_BODIES.filter(
  ({ kind, isForm }) => CALL_KINDS[kind].hasInput && isForm !== true,
);

describe.each(COUNTED)(
  "the prompt that is sent for a body of $endpoint.name",
  ({ endpoint, bodies, kind }) => {
    it("stays within the upper bound (a token per byte) and the estimate (a token per four bytes) in any format", async () => {
      const sent = new Map<string, number>();
      const network = taken();
      const formats = REQUEST_FORMATS.filter((format) => format.kind === kind);
      await fc.assert(
        fc.asyncProperty(bodies, fc.double({ min: 0, max: 1, noNaN: true }), async (body, at) => {
          const parsed = parsedBy(endpoint, body as object);
          fc.pre(parsed !== null);
          for (const format of formats) {
            const request = parsed === null ? null : boundAt(parsed, format);
            const billed = request === null ? null : await sentFor(request, format, network);
            if (request === null || billed === null) continue;
            sent.set(format.name, (sent.get(format.name) ?? 0) + 1);
            const { bound, estimate } = request.prompt;
            expect(bound, format.name).toBeGreaterThanOrEqual(billed.bytes);
            expect(estimate, format.name).toBeGreaterThanOrEqual(billed.tokens);
            expectPaid(request, billed.tokens, at);
          }
        }),
        { numRuns: CASES },
      );
      expect(formats).not.toEqual([]);
      for (const { name } of formats) expect(sent.get(name), name).toBeGreaterThan(CASES / 10);
    }, 3_600_000);
  },
);

const messagesWith = (part: object) => [{ role: "user", content: [part] }];

describe("a PDF in the prompt", () => {
  const file = { file_data: PDF_DATA_URL_PREFIX + PDF_DATA };
  const READERS = ["openai", "openai", "anthropic", "anthropic", "google", "sandbox"];

  it.each([
    ["chat", chatEndpoint, { messages: messagesWith({ type: "file", file }), max_tokens: 64 }],
    [
      "responses",
      responsesEndpoint,
      { input: messagesWith({ type: "input_file", ...file }), max_output_tokens: 64 },
    ],
  ])(
    "reaches every provider format that supports files, and causes a 400 for all others: %s",
    async (_, endpoint, fields) => {
      const parsed = parsedBy(endpoint, { model: "m", ...fields });
      if (parsed === null) throw new Error("refused");
      const network = taken();
      const reached: string[] = [];
      for (const format of REQUEST_FORMATS.filter(({ kind }) => kind === "chat")) {
        const request = boundAt(parsed, format);
        if (request === null) continue;
        reached.push(format.id);
        await sentFor(request, format, network);
        expect(network.join("").includes(PDF_DATA), format.name).toBe(format.id !== "sandbox");
      }
      expect(reached).toEqual(READERS);
    },
  );
});

it("a request with several prompts is rejected if only the sum reaches the long-prompt price", () => {
  const [format] = REQUEST_FORMATS;
  const [route] = MODEL.routes;
  if (format === undefined || route === undefined) throw new Error("none");
  const longPrompt = { aboveTokens: 1000, price: { ...route.price } };
  const of = (count: number): PaidRequest | null => {
    const prompt = Array.from({ length: count }, () => "x".repeat(400));
    const parsed = parsedBy(completionsEndpoint, { model: "m", prompt });
    return parsed === null ? null : boundAt(parsed, format, { longPrompt });
  };
  expect([of(1) === null, of(2) === null, of(3) === null]).toEqual([false, false, true]);
});
