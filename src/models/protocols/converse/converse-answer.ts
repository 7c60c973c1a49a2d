import type { Usage } from "../../../shared/usage.ts";
import {
  createObjectReader,
  textOf,
  createListReader,
  createOptionalReader,
} from "../../core/json-value.ts";
import {
  discardUsageWithoutPrompt,
  readCountOrZero,
  readTokenCount,
} from "../../core/openai-usage.ts";
import { claudeThoughtToDetail } from "../../claude/thoughts.ts";
import { toFinishReason, toCompletion, joinTextOfOutputParts } from "../../core/output-part.ts";
import type { ProviderResponse, JsonObject, ProviderFailure } from "../../core/provider.ts";
import type { FinishReason, OutputPart } from "../../core/output-part.ts";
import { addUsageToFailure } from "../../core/frame-reader.ts";

const readCounts = createObjectReader({
  inputTokens: readTokenCount,
  outputTokens: readTokenCount,
  cacheReadInputTokens: readCountOrZero,
  cacheWriteInputTokens: readCountOrZero,
});

/**
 * Reads Converse's TokenUsage. `inputTokens` excludes cached tokens, and `outputTokens` includes
 * reasoning. Returns null if the usage is invalid or all counts are 0.
 */
export function readConverseUsage(raw: unknown): Usage | null {
  const { inputTokens: input, outputTokens: output, ...cache } = readCounts(raw);
  const { cacheReadInputTokens: cacheRead, cacheWriteInputTokens: cacheWrite } = cache;
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  return discardUsageWithoutPrompt({ input, cacheRead, cacheWrite, output, reasoning: 0 });
}

export function parseConverseFinishReason(stopReason: unknown): FinishReason | null {
  return toFinishReason(textOf(stopReason));
}

/** The failure for a response that the model didn't complete. */
export const INCOMPLETE_RESPONSE_FAILURE: ProviderFailure = {
  kind: "retry",
  reason: "broken_off",
  fault: "request",
};

const readBlock = createObjectReader({
  text: textOf,
  reasoningContent: createObjectReader({
    reasoningText: createObjectReader({ text: textOf, signature: textOf }),
  }),
  toolUse: createOptionalReader(
    createObjectReader({ toolUseId: textOf, name: textOf, input: (input) => input ?? {} }),
  ),
});
const readOutput = createObjectReader({
  message: createOptionalReader(createObjectReader({ content: createListReader(readBlock) })),
});

/**
 * Converts a Converse response. Returns null if it is invalid. The input of `answerTool` becomes
 * the JSON output.
 */
export function readConverseResponse(
  { output, stopReason, usage: rawUsage }: JsonObject,
  answerTool: string | null,
): ProviderResponse | ProviderFailure | null {
  const { message } = readOutput(output);
  if (message === null) return null;
  const reason = parseConverseFinishReason(stopReason);
  const usage = readConverseUsage(rawUsage);
  const answerCall = message.content.find(({ toolUse }) => toolUse?.name === answerTool)?.toolUse;
  const parts: OutputPart[] = [
    // The first call of `answerTool` is the JSON output. Drops its other calls, and other text.
    { kind: "text", text: answerCall ? JSON.stringify(answerCall.input) : "" },
    ...message.content.flatMap((one) => toOutputParts(one, answerTool)),
    { kind: "finish", reason: reason ?? "stop" },
  ];
  const visibleParts = answerCall
    ? parts.filter(({ kind }, at) => at === 0 || kind !== "text")
    : parts;
  if (reason !== null) return toCompletion([visibleParts], usage);
  return addUsageToFailure(INCOMPLETE_RESPONSE_FAILURE, {
    usage,
    text: joinTextOfOutputParts(visibleParts),
  });
}

function toOutputParts(
  { text, reasoningContent, toolUse }: ReturnType<typeof readBlock>,
  answerTool: string | null,
): OutputPart[] {
  const { reasoningText: thought } = reasoningContent;
  const detail = toClaudeReasoningDetail(thought.text, thought.signature);
  return [
    { kind: "text", text },
    { kind: "thought", text: thought.text },
    ...(detail === null ? [] : [{ kind: "detail" as const, detail }]),
    ...(toolUse === null || toolUse.name === answerTool
      ? []
      : [
          {
            kind: "call" as const,
            id: toolUse.toolUseId,
            name: toolUse.name,
            arguments: JSON.stringify(toolUse.input),
          },
        ]),
  ];
}

export function toClaudeReasoningDetail(thinking: string, signature: string): JsonObject | null {
  return claudeThoughtToDetail({ type: "thinking", data: "", thinking, signature });
}
