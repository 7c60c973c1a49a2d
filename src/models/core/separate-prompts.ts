import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { sumUsage } from "../../shared/usage.ts";
import type { ChatBody } from "./core-request.ts";
import { isObject, listOf, numberOf } from "./json-value.ts";
import { joinOutputText } from "./chunk.ts";
import type {
  ChatCall,
  JsonObject,
  Provider,
  ProviderResult,
  ProviderFailure,
} from "./provider.ts";
import { addUsageToFailure } from "./frame-reader.ts";

/** Maximum concurrent provider calls for one request (a Workers limit). */
export const CONCURRENT_PROVIDER_CALLS_MAX = 6;

type JsonAnswer = Extract<ProviderResult, { kind: "json" }>;

/**
 * Sends each message as a separate prompt. Joins the results, numbered as in OpenAI's legacy
 * completions. Stops at the first failure. The finished results are charged only if the request may
 * have caused that failure.
 */
export async function sendPromptsSeparately(
  provider: Provider,
  call: ChatCall,
): Promise<ProviderResult> {
  const { messages } = call.body;
  const failures: ProviderFailure[] = [];
  const answers = await mapConcurrently(
    Math.min(CONCURRENT_PROVIDER_CALLS_MAX, messages.length),
    messages,
    async (message): Promise<JsonAnswer | null> => {
      if (failures.length > 0) return null;
      const one = { ...call, body: { ...call.body, messages: [message] } };
      const answer = await provider.send(one);
      const result = shouldRetry(answer, call) ? await provider.send(one) : answer;
      if (result.kind === "json") return result;
      failures.push(result.kind === "failure" ? result.failure : NO_JSON);
      return null;
    },
  );
  const finished = answers.filter((answer) => answer !== null);
  const [failure] = failures;
  if (failure !== undefined) {
    return { kind: "failure", failure: addFinishedUsage(failure, finished) };
  }
  return { kind: "json", body: combineAnswers(finished, call.body), usage: usageOf(finished) };
}

const NO_JSON: ProviderFailure = { kind: "retry", reason: "bad_answer" };

function shouldRetry(answer: ProviderResult, { signal }: ChatCall): boolean {
  return answer.kind === "failure" && answer.failure.again === true && !signal.aborted;
}

function combineAnswers(answers: readonly JsonAnswer[], { n: each = 1 }: ChatBody): JsonObject {
  const choices: JsonObject[] = [];
  for (const [prompt, answer] of answers.entries()) {
    for (const [at, choice] of choicesOf(answer.body).entries()) {
      choices.push({ ...choice, index: prompt * each + (numberOf(choice["index"]) ?? at) });
    }
  }
  return { ...answers[0]?.body, choices };
}

function usageOf(answers: readonly JsonAnswer[]) {
  return sumUsage(answers.map(({ usage }) => usage));
}

function addFinishedUsage(
  failure: ProviderFailure,
  finished: readonly JsonAnswer[],
): ProviderFailure {
  const { spent } = failure;
  const usages = [
    ...finished.map(({ usage }) => usage),
    ...(spent === undefined ? [] : [spent.usage]),
  ];
  const texts = finished.flatMap(({ body }) => choicesOf(body)).map(({ message }) => message);
  const text = texts.filter(isObject).map(joinOutputText).join("");
  return addUsageToFailure(failure, { usage: usages.length === 0 ? null : sumUsage(usages), text });
}

function choicesOf({ choices }: JsonObject): JsonObject[] {
  return listOf(choices).filter(isObject);
}
