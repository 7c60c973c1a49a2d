import { expect, it } from "vitest";
import type { AiBinding } from "../../src/shared/config/config.ts";
import { createWorkersAiProvider } from "../../src/models/providers/workers-ai.ts";
import {
  cutStreamReply,
  bindingFailure,
  jsonReply,
  restFailure,
  streamReply,
  WORKERS_AI_FAILURES,
} from "../fixtures/workers-ai-replies.ts";
import { CANARY, CANARY_TEXT } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, callOf, eventsOf } from "./adapter-kit.ts";
import { WORKERS_AI_PROVIDER as provider } from "./workers-ai-binding.ts";

/** Error codes with their status and meaning. */
const CODES: readonly [number, number, object][] = [
  [5007, 400, { kind: "disabled" }],
  [3042, 404, { kind: "disabled" }],
  [5004, 400, { kind: "refused" }],
  [3003, 400, { kind: "refused" }],
  [3039, 400, { kind: "refused" }],
  [3006, 413, { kind: "refused" }],
  [5016, 403, { kind: "disabled" }],
  [5018, 403, { kind: "disabled" }],
  [3041, 403, { kind: "disabled" }],
  [3023, 403, { kind: "disabled" }],
  [5005, 405, { kind: "retry", again: false }],
  [5019, 405, { kind: "retry", again: false }],
  [3007, 408, { kind: "retry", again: true }],
  [3008, 408, { kind: "retry", again: true }],
  [3036, 429, { kind: "disabled" }],
  [4006, 429, { kind: "disabled" }],
  [3040, 429, { kind: "overloaded" }],
];

async function failureOf(reply: RawReply, streamed = false) {
  const { answer } = await answerTo(provider, { stream: streamed }, reply);
  if (answer.kind !== "failure") throw new Error(`no failure: ${JSON.stringify(answer)}`);
  return answer.failure;
}

for (const [code, status, meaning] of CODES) {
  it(`the Workers AI adapter maps ${code} to the same failure from the binding, the REST API, a 200 and an exception`, async () => {
    const want = { ...meaning, reason: String(code) };
    expect(await failureOf(bindingFailure(status, code))).toMatchObject(want);
    expect(await failureOf(bindingFailure(status, code), true)).toMatchObject(want);
    expect(await failureOf(restFailure(status, code))).toMatchObject(want);
    expect(await failureOf(restFailure(200, code))).toMatchObject(want);
    expect(await failureOf(restFailure(200, code), true)).toMatchObject(want);
    for (const words of [`${code}: sorry`, `InferenceUpstreamError: ${code}: AiError: sorry`]) {
      const thrower: AiBinding = { run: () => Promise.reject(new Error(words)) };
      expect(await createWorkersAiProvider(thrower).send(callOf())).toMatchObject({
        failure: want,
      });
    }
  });
}

it("the Workers AI adapter maps an unknown code by its status, and an exhausted allocation by its text", async () => {
  expect(await failureOf(bindingFailure(429, 9999))).toMatchObject({ kind: "overloaded" });
  expect(await failureOf(bindingFailure(502, 9999))).toMatchObject({ kind: "retry", again: true });
  const words = "you have used up your daily free allocation of 10,000 neurons";
  expect(await failureOf(restFailure(429, 400, words))).toMatchObject({ kind: "disabled" });
});

it("the Workers AI adapter returns OpenAI's text for a prompt that is too long, whatever the source", async () => {
  const estimate =
    "The estimated number of input and maximum output tokens (35000) exceeded this model context window limit (24000)";
  const total =
    "Requested token count exceeds the model's maximum context length of 131072 tokens.";
  const replies = [
    bindingFailure(413, 5021, estimate),
    restFailure(413, 3010, estimate),
    bindingFailure(400, 5006, total),
  ];
  for (const reply of replies) {
    expect(await failureOf(reply)).toMatchObject({
      kind: "refused",
      code: "context_length_exceeded",
      message: expect.stringContaining("maximum context length"),
    });
  }
});

it("the Workers AI adapter returns only the sentence of a rejection, without error names, codes or IDs", async () => {
  expect(await failureOf(restFailure(400, 5004, "Invalid data"))).toMatchObject({
    message: "Invalid data",
  });
});

it("the Workers AI adapter allows a retry after a network failure, but not after an abort", async () => {
  const lost: AiBinding = { run: () => Promise.reject(new TypeError("Network connection lost.")) };
  const failure = { kind: "retry", reason: "connection", again: true };
  expect(await createWorkersAiProvider(lost).send(callOf())).toEqual({ kind: "failure", failure });
  const aborted = { ...callOf(), signal: AbortSignal.abort() };
  expect(await createWorkersAiProvider(lost).send(aborted)).toMatchObject({
    failure: { reason: "aborted" },
  });
  const late: AiBinding = { run: () => Promise.reject(new Error("3040: no capacity")) };
  expect(await createWorkersAiProvider(late).send(aborted)).toMatchObject({
    failure: { reason: "aborted" },
  });
  const plain: AiBinding = { run: () => Promise.resolve({ response: "Hi" }) };
  expect(await createWorkersAiProvider(plain).send(callOf())).toMatchObject({
    failure: { kind: "retry" },
  });
});

const kindsOf = async (reply: RawReply) =>
  (await eventsOf(provider, {}, reply)).map((event) => event.kind);

it("the Workers AI adapter reports an error in the first event as a failure before any output", async () => {
  expect(await kindsOf(WORKERS_AI_FAILURES.errorFirst)).toEqual(["error"]);
  expect(await kindsOf(WORKERS_AI_FAILURES.errorMid)).toEqual(["chunk", "text", "error"]);
  expect(await kindsOf(WORKERS_AI_FAILURES.cut)).toEqual(["chunk", "text", "text"]);
  expect(await kindsOf(streamReply("no json"))).toEqual(["error"]);
  const restBody = String(restFailure(200, 3040).body);
  expect(await eventsOf(provider, {}, cutStreamReply(restBody))).toMatchObject([
    { kind: "error", failure: { kind: "overloaded", reason: "3040" } },
  ]);
});

it("the Workers AI adapter omits the provider's text from a failure", async () => {
  const { errors, errorFirst, errorMid } = WORKERS_AI_FAILURES;
  const seen: unknown[] = [];
  for (const reply of Object.values(errors)) {
    for (const streamed of [true, false]) {
      seen.push(await failureOf(reply, streamed));
    }
  }
  for (const reply of [errorFirst, errorMid]) {
    seen.push(await eventsOf(provider, {}, reply));
  }
  const thrower: AiBinding = { run: () => Promise.reject(new Error(`5004: ${CANARY_TEXT}`)) };
  seen.push(await createWorkersAiProvider(thrower).send(callOf()));
  const text = JSON.stringify(seen);
  for (const secret of [CANARY.key, CANARY.host, CANARY.account]) {
    expect(text).not.toContain(secret);
  }
  const logged = seen.map((one) => (one as { reason?: string }).reason ?? "");
  expect(logged.join()).not.toContain("canary");
});

it("the Workers AI adapter treats a 200 without output as a failure", async () => {
  for (const body of ["{}", '{"choices":[]}', "[]", "<html>", '{"result":{},"success":true}']) {
    expect(await failureOf(jsonReply(body))).toMatchObject({ kind: "retry" });
  }
  const broken = '{"choices":[{"message":{"content":"Hel"},"finish_reason":"abort"}]}';
  expect(await failureOf(jsonReply(broken))).toMatchObject({ kind: "retry", reason: "broken_off" });
});
