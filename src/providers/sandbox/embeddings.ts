import type { JsonObject, ProviderAnswer, ProviderCall } from "../provider.ts";
import { base64Floats, embeddedWords, vectorOf } from "./embedding-vector.ts";
import { countTokens } from "./tokens.ts";

const DIMENSIONS_DEFAULT = 256;
const DIMENSIONS_MAX = 1024;

/** OpenAI's embedding list for any of the four kinds of input; dimensions out of range are refused. */
export function embeddingsAnswer(call: ProviderCall): ProviderAnswer {
  const dimensions = call.body["dimensions"] ?? DIMENSIONS_DEFAULT;
  if (!isDimension(dimensions)) {
    const message = `'dimensions' must be a whole number from 1 to ${DIMENSIONS_MAX} for this model.`;
    const detail = { message, param: "dimensions", code: null, reason: "400" };
    return { kind: "failure", failure: { kind: "refused", ...detail } };
  }
  const inputs = inputsOf(call.body["input"]);
  const asBase64 = call.body["encoding_format"] === "base64";
  const data = inputs.map((input, index): JsonObject => {
    const vector = vectorOf(input.words, dimensions);
    return { object: "embedding", index, embedding: asBase64 ? base64Floats(vector) : vector };
  });
  const tokens = inputs.reduce((sum, input) => sum + input.tokens, 0);
  return {
    kind: "json",
    body: {
      object: "list",
      data,
      model: call.upstreamId,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    },
    usage: { input: tokens, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
  };
}

type Input = { readonly words: readonly string[]; readonly tokens: number };

function inputsOf(input: unknown): readonly Input[] {
  if (!Array.isArray(input)) return [textInput(String(input))];
  if (typeof input[0] === "number") return [tokenInput(input)];
  return input.map((one) => (Array.isArray(one) ? tokenInput(one) : textInput(String(one))));
}

function textInput(text: string): Input {
  return { words: embeddedWords(text), tokens: countTokens(text) };
}

/** Token ids mean nothing here: each is a word of its own. */
function tokenInput(ids: readonly unknown[]): Input {
  return { words: ids.map((id) => `#${String(id)}`), tokens: ids.length };
}

function isDimension(value: unknown): value is number {
  return (
    typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= DIMENSIONS_MAX
  );
}
