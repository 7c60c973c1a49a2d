import { expect, it } from "vitest";
import { INCOMPLETE_RESPONSE_FAILURE } from "../../src/models/protocols/converse/converse-answer.ts";
import { parseConverseFinishReason as converseFinish } from "../../src/models/protocols/converse/converse-answer.ts";
import { createCohereFinishFailure } from "../../src/models/protocols/cohere/answer.ts";
import { parseGeminiFinishReason as googleFinish } from "../../src/models/protocols/gemini/answer.ts";
import { readChatCompletion } from "../../src/models/protocols/chat/answer.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import type { ProviderFailure } from "../../src/models/core/provider.ts";
import {
  readWorkersAiChat as workersAiAnswer,
  WorkersAiStream,
} from "../../src/models/protocols/workers-ai/answer.ts";
import { chunkOf } from "../fixtures/openai-replies.ts";
import { callOf } from "./adapter-kit.ts";

const whole = (finish_reason: string) => ({
  choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason }],
});

const streamed = (reader: ChatChunkReader | WorkersAiStream, finish: string) => {
  const read = reader.read(JSON.stringify(chunkOf({ content: "x" }, finish)), "message");
  const last = [...read, ...(reader.ended ? [] : reader.endOfFile())].at(-1);
  return last?.kind === "error" ? last.failure : null;
};

/** The expected result for each provider's reasons to fail a request. */
const PROVOKED: Readonly<Record<string, unknown>> = {
  "OpenAI's API": readChatCompletion(whole("error")),
  "OpenAI's API, a stream": streamed(new ChatChunkReader(), "error"),
  "Workers AI": workersAiAnswer(whole("error"), callOf()),
  "Workers AI, a stream": streamed(new WorkersAiStream(256), "error"),
  Gemini: googleFinish("MALFORMED_FUNCTION_CALL"),
  Converse: converseFinish("malformed_tool_use") ?? INCOMPLETE_RESPONSE_FAILURE,
  Cohere: createCohereFinishFailure("ERROR"),
};
const OWN: Readonly<Record<string, unknown>> = {
  "OpenAI's API": readChatCompletion(whole("abort")),
  "OpenAI's API, a stream": streamed(new ChatChunkReader(), "insufficient_system_resource"),
  "Workers AI": workersAiAnswer(whole("abort"), callOf()),
  "Workers AI, a stream": streamed(new WorkersAiStream(256), "abort"),
  Cohere: createCohereFinishFailure("TIMEOUT"),
};
const kept = (failure: unknown) => {
  const { kind, fault } = failure as ProviderFailure;
  return { kind, fault };
};

it.each(Object.entries(PROVOKED))(
  "a failure that a client can cause doesn't count against the route: %s",
  (_, failure) => {
    expect(kept(failure)).toEqual({ kind: "retry", fault: "request" });
  },
);

it.each(Object.entries(OWN))(
  "a failure due to a lack of capacity or time counts against the route: %s",
  (_, failure) => {
    expect(kept(failure)).toEqual({ kind: "retry", fault: undefined });
  },
);
