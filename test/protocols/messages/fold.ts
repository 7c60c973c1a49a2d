import { expect } from "vitest";
import { event } from "./message-schemas.ts";

/** One event of a Messages stream, unchanged. */
export type Event = { readonly name: string; readonly data: Record<string, unknown> };

/**
 * Parses the events of a stream, and checks each against its type. Throws for lines outside of
 * events.
 */
export function parseEvents(text: string): Event[] {
  if (text === "") return [];
  expect(text.endsWith("\n\n")).toBe(true);
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((block) => {
      const match = /^event: (\S+)\ndata: (\{.*\})$/s.exec(block);
      if (match === null) throw new Error(`no event: ${block}`);
      const data = event.parse(JSON.parse(match[2] ?? ""));
      expect(data["type"]).toBe(match[1]);
      return { name: match[1] ?? "", data };
    });
}

type Block = Record<string, unknown>;

/**
 * Joins block events to the content that a strict client gets. Throws for any other order than the
 * documented one: indexes without gaps, one open block, deltas only for the open block and its
 * kind, and one signature at the end.
 */
export function foldBlocks(events: readonly Event[]): Block[] {
  const content: Block[] = [];
  let open: { block: Block; json: string; isSigned: boolean } | null = null;
  for (const { name, data } of events) {
    if (name === "content_block_start") {
      if (open !== null) throw new Error("two blocks are open");
      expect(data["index"]).toBe(content.length);
      open = { block: { ...(data["content_block"] as Block) }, json: "", isSigned: false };
      if (open.block["type"] === "tool_use") expect(open.block["input"]).toEqual({});
      continue;
    }
    if (open === null) throw new Error(`${name} without an open block`);
    expect(data["index"]).toBe(content.length);
    if (name === "content_block_delta") applyDelta(open, data["delta"] as Block);
    else if (name === "content_block_stop") {
      const { block, json } = open;
      if (block["type"] === "tool_use") block["input"] = json === "" ? {} : JSON.parse(json);
      content.push(block);
      open = null;
    } else throw new Error(`unknown event ${name}`);
  }
  if (open !== null) throw new Error("a block was left open");
  return content;
}

const KINDS: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  signature_delta: "thinking",
  input_json_delta: "tool_use",
};

function applyDelta(open: { block: Block; json: string; isSigned: boolean }, delta: Block): void {
  const { block } = open;
  expect(block["type"]).toBe(KINDS[String(delta["type"])]);
  if (open.isSigned) throw new Error("something came after a signature");
  switch (delta["type"]) {
    case "text_delta":
      block["text"] = String(block["text"]) + String(delta["text"]);
      break;
    case "thinking_delta":
      block["thinking"] = String(block["thinking"]) + String(delta["thinking"]);
      break;
    case "signature_delta":
      open.isSigned = true;
      block["signature"] = delta["signature"];
      break;
    default:
      open.json += String(delta["partial_json"]);
  }
}
