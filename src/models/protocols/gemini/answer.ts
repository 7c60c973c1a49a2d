import { finishReasonOf } from "../../core/finish-reason.ts";
import { numberOf, objectOf, textOf } from "../../core/json-value.ts";
import type { ProviderResponse, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { toCompletion, textOfOutputParts } from "../../core/output-part.ts";
import type { FinishReason } from "../../core/finish-reason.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { anyValue, listReader, optionalReader, objectReader } from "../../core/shape.ts";
import { failureWithUsage } from "../../core/failed-usage.ts";
import { readGeminiUsage } from "./usage.ts";

const readPart = objectReader({
  text: textOf,
  thought: anyValue,
  thoughtSignature: textOf,
  functionCall: objectReader({ id: textOf, name: textOf, args: optionalReader(objectOf) }),
});
const readCandidate = objectReader({
  index: numberOf,
  content: objectReader({ parts: listReader(readPart) }),
  finishReason: textOf,
});
const readResponse = objectReader({
  candidates: listReader(readCandidate),
  promptFeedback: objectReader({ blockReason: textOf }),
  usageMetadata: anyValue,
});

const FAILURE_REASONS: ReadonlySet<string> = new Set([
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
]);

export function geminiFinishReason(reason: string): FinishReason | ProviderFailure {
  const finishReason = FAILURE_REASONS.has(reason) ? null : finishReasonOf(reason);
  return finishReason ?? { kind: "retry", reason: reason.toLowerCase(), fault: "request" };
}

type Candidate = {
  readonly index: number;
  readonly parts: readonly OutputPart[];
  readonly finish: string;
};

export function readGeminiCandidates(raw: JsonObject) {
  const { candidates, promptFeedback, usageMetadata } = readResponse(raw);
  const isBlocked = candidates.length === 0 && promptFeedback.blockReason !== "";
  const parsedCandidates = candidates.map(
    ({ index = -1, content, finishReason: finish }, position): Candidate => {
      const choiceIndex = Number.isSafeInteger(index) && index >= 0 ? index : position;
      return { index: choiceIndex, parts: content.parts.flatMap(toOutputParts), finish };
    },
  );
  return { isBlocked, candidates: parsedCandidates, usage: readGeminiUsage(usageMetadata) };
}

function toOutputParts({
  text,
  thought,
  functionCall,
  thoughtSignature,
}: ReturnType<typeof readPart>): OutputPart[] {
  if (text !== "") return [{ kind: thought === true ? "thought" : "text", text }];
  const { id, name, args } = functionCall;
  if (name === "") return [];
  const more = { extra_content: { google: { thought_signature: thoughtSignature } } };
  const argumentsJson = args === null ? "" : JSON.stringify(args);
  return [
    { kind: "call", id, name, arguments: argumentsJson, ...(thoughtSignature !== "" && { more }) },
  ];
}

export function readGeminiChat(raw: JsonObject): ProviderResponse | ProviderFailure | null {
  const { isBlocked, candidates, usage } = readGeminiCandidates(raw);
  if (isBlocked) {
    return toCompletion([[EMPTY_TEXT, { kind: "finish", reason: "content_filter" }]], usage);
  }
  const choices: (readonly OutputPart[])[] = [];
  for (const { parts, finish } of candidates.toSorted((a, b) => a.index - b.index)) {
    const reason = geminiFinishReason(finish);
    if (typeof reason === "object") {
      return failureWithUsage(reason, {
        usage,
        text: textOfOutputParts([...choices.flat(), ...parts]),
      });
    }
    choices.push([EMPTY_TEXT, ...parts, { kind: "finish", reason }]);
  }
  return choices.length === 0 ? null : toCompletion(choices, usage);
}

const EMPTY_TEXT: OutputPart = { kind: "text", text: "" };
