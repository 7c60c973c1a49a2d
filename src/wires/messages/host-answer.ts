import { completionOf } from "../../core/completion.ts";
import type { Said, SaidTool } from "../../core/completion.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type { Answer, JsonObject } from "../../core/provider.ts";
import { finishOf, refusalOf } from "./host-stop-reason.ts";
import { thoughtDetail } from "../../claude/thoughts.ts";
import { messagesUsage } from "./host-usage.ts";

/**
 * The JSON of a message as a chat completion; null when it is none. `jsonTool` is the tool whose input
 * is the answer, `secret` our key there.
 */
export function messagesAnswer(
  raw: JsonObject,
  jsonTool: string | null,
  secret: string,
): Answer | null {
  if (!Array.isArray(raw["content"])) return null;
  const blocks = listOf(raw["content"]).filter(isObject);
  const texts = blocks.map((block) => textIn(block, jsonTool)).filter((text) => text !== null);
  const refusal = refusalOf(raw["stop_details"], secret);
  const finish = finishOf(raw["stop_reason"]);
  const isRefused = finish === "content_filter";
  const said: Said = {
    content: isRefused && texts.length === 0 ? null : texts.join(""),
    reasoning: ofType(blocks, "thinking")
      .map((block) => textOf(block["thinking"]))
      .join(""),
    details: blocks.map(detailIn).filter((detail) => detail !== null),
    ...(isRefused && refusal !== "" && { refusal }),
    tools: ofType(blocks, "tool_use")
      .filter((block) => block["name"] !== jsonTool)
      .map(toolIn),
    finish,
  };
  return completionOf([said], messagesUsage(objectOf(raw["usage"])));
}

function ofType(blocks: readonly JsonObject[], type: string): readonly JsonObject[] {
  return blocks.filter((block) => block["type"] === type);
}

function textIn(block: JsonObject, jsonTool: string | null): string | null {
  if (block["type"] === "text") return textOf(block["text"]);
  const isAnswer = block["type"] === "tool_use" && block["name"] === jsonTool;
  return isAnswer ? JSON.stringify(objectOf(block["input"])) : null;
}

function detailIn(block: JsonObject): JsonObject | null {
  return textOf(block["type"]).endsWith("thinking") ? thoughtDetail(block) : null;
}

function toolIn(block: JsonObject): SaidTool {
  return {
    id: textOf(block["id"]),
    name: textOf(block["name"]),
    arguments: JSON.stringify(objectOf(block["input"])),
  };
}
