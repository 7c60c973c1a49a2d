import { finishReasonOf } from "../../core/finish-reason.ts";
import { numberOf, objectOf, textOf } from "../../core/json-value.ts";
import type { ProviderResponse, JsonObject, ProviderFailure } from "../../core/provider.ts";
import { toCompletion, textOfOutputParts } from "../../core/output-part.ts";
import type { FinishReason } from "../../core/finish-reason.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { anyValue, listReader, optionalReader, objectReader } from "../../core/shape.ts";
import { failureWithUsage } from "../../core/failed-usage.ts";
import { readGeminiUsage } from "./usage.ts";

const part = objectReader({
  text: textOf,
  thought: anyValue,
  thoughtSignature: textOf,
  functionCall: objectReader({ id: textOf, name: textOf, args: optionalReader(objectOf) }),
});
const candidate = objectReader({
  index: numberOf,
  content: objectReader({ parts: listReader(part) }),
  finishReason: textOf,
});
const answer = objectReader({
  candidates: listReader(candidate),
  promptFeedback: objectReader({ blockReason: textOf }),
  usageMetadata: anyValue,
});

const FAILED: ReadonlySet<string> = new Set([
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
]);

export function geminiFinishReason(reason: string): FinishReason | ProviderFailure {
  const meaning = FAILED.has(reason) ? null : finishReasonOf(reason);
  return meaning ?? { kind: "retry", reason: reason.toLowerCase(), fault: "request" };
}

type Candidate = {
  readonly index: number;
  readonly parts: readonly OutputPart[];
  readonly finish: string;
};

export function readGeminiCandidates(raw: JsonObject) {
  const { candidates, promptFeedback, usageMetadata } = answer(raw);
  const isBlocked = candidates.length === 0 && promptFeedback.blockReason !== "";
  const read = candidates.map(
    ({ index = -1, content, finishReason: finish }, position): Candidate => {
      const at = Number.isSafeInteger(index) && index >= 0 ? index : position;
      return { index: at, parts: content.parts.flatMap(saidIn), finish };
    },
  );
  return { isBlocked, candidates: read, usage: readGeminiUsage(usageMetadata) };
}

function saidIn({
  text,
  thought,
  functionCall,
  thoughtSignature,
}: ReturnType<typeof part>): OutputPart[] {
  if (text !== "") return [{ kind: thought === true ? "thought" : "text", text }];
  const { id, name, args } = functionCall;
  if (name === "") return [];
  const more = { extra_content: { google: { thought_signature: thoughtSignature } } };
  const given = args === null ? "" : JSON.stringify(args);
  return [{ kind: "call", id, name, arguments: given, ...(thoughtSignature !== "" && { more }) }];
}

export function readGeminiChat(raw: JsonObject): ProviderResponse | ProviderFailure | null {
  const { isBlocked, candidates, usage } = readGeminiCandidates(raw);
  if (isBlocked) {
    return toCompletion([[NOTHING, { kind: "finish", reason: "content_filter" }]], usage);
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
    choices.push([NOTHING, ...parts, { kind: "finish", reason }]);
  }
  return choices.length === 0 ? null : toCompletion(choices, usage);
}

const NOTHING: OutputPart = { kind: "text", text: "" };
