import { expect } from "vitest";
import { event, outputItem, response } from "./sdk-schemas.ts";
import type { AnyEvent, AnyResponse, Item } from "./sdk-schemas.ts";

/**
 * Parses the events of a stream, and checks each against its type. Omits comments. Requires [DONE]
 * at the end.
 */
export function eventsOf(text: string): AnyEvent[] {
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  return eventsSoFar(text.slice(0, -"data: [DONE]\n\n".length));
}

export function eventsSoFar(text: string): AnyEvent[] {
  const blocks = text.split("\n\n").filter((block) => block !== "" && !block.startsWith(":"));
  return blocks.map((block) => {
    const [, name, data] = /^event: (\S+)\ndata: (.*)$/s.exec(block) ?? [];
    const parsed = event.parse(JSON.parse(data ?? "null"));
    expect(parsed.type).toBe(name);
    return parsed;
  });
}

type Part = Extract<Item, { type: "message" }>["content"][number];
/** An item as its deltas describe it. */
type Followed = {
  readonly added: Item;
  readonly parts: { part: Part; isDone: boolean }[];
  summary: string | null;
  args: string;
  hasArgs: boolean;
  done: Item | null;
};

/** A client's result of a stream, by the strictest rules of any client. */
export type Account = { readonly response: AnyResponse; readonly done: readonly (Item | null)[] };

/**
 * Joins events as a client does, and checks the documented order: numbers without gaps, an item
 * closed before the next one opens, and deltas between added and done. Deltas, done events and the
 * terminal response must have the same content.
 */
export function followResponse(events: readonly AnyEvent[]): Account {
  const items: Followed[] = [];
  expect(events.map((one) => one.sequence_number)).toEqual(events.map((_, index) => index));
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
  ]);
  const terminal = events.at(-1);
  if (terminal === undefined || !("response" in terminal)) throw new Error("no terminal event");
  for (const one of events.slice(2, -1)) step(items, one);
  const final = terminal.response;
  expect(terminal.type).toBe(`response.${final.status}`);
  const [created] = events;
  if (created === undefined || !("response" in created)) throw new Error("no first event");
  expect(created.response.output).toEqual([]);
  expect(created.response.status).toBe("in_progress");
  expect(created.response.id).toBe(final.id);
  expect(final.output.length).toBe(items.length);
  for (const [index, item] of final.output.entries()) agree(items[index], item, final);
  const ids = final.output.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(events.some(({ type }) => type === "error")).toBe(final.status === "failed");
  return { response: response.parse(final), done: items.map((item) => item.done) };
}

// oxlint-disable-next-line complexity, max-lines-per-function -- one case for each kind of event
function step(items: Followed[], one: AnyEvent): void {
  if (one.type === "keepalive" || one.type === "error") return;
  if ("response" in one) throw new Error(`${one.type} in the midst`);
  if (one.type === "response.output_item.added") {
    expect(one.output_index).toBe(items.length);
    const before = items.at(-1);
    if (before !== undefined && before.added.type === "message") {
      expect(before.done, "closed before the next opens").not.toBeNull();
    }
    expect(one.item.status).toBe("in_progress");
    items.push({
      added: one.item,
      parts: [],
      summary: null,
      args: "",
      hasArgs: false,
      done: null,
    });
    return;
  }
  const item = items[one.output_index];
  if (item === undefined) throw new Error(`${one.type} before its item`);
  expect(item.done, "nothing after done").toBeNull();
  if (one.type === "response.output_item.done") {
    expect(one.item.id).toBe(item.added.id);
    expect(one.item.type).toBe(item.added.type);
    item.done = one.item;
    return;
  }
  expect(one.item_id).toBe(item.added.id);
  const here = "content_index" in one ? item.parts[one.content_index] : undefined;
  switch (one.type) {
    case "response.content_part.added":
      expect(one.content_index).toBe(item.parts.length);
      item.parts.push({ part: one.part, isDone: false });
      break;
    case "response.output_text.delta":
      if (here?.part.type !== "output_text") throw new Error("a delta of another part");
      here.part.text += one.delta;
      here.part.logprobs.push(...one.logprobs);
      break;
    case "response.output_text.annotation.added":
      if (here?.part.type !== "output_text") throw new Error("an annotation of another part");
      expect(one.annotation_index).toBe(here.part.annotations.length);
      here.part.annotations.push(one.annotation);
      break;
    case "response.output_text.done":
      if (here?.part.type !== "output_text") throw new Error("the end of another part");
      expect(one.text).toBe(here.part.text);
      expect(one.logprobs).toEqual(here.part.logprobs);
      break;
    case "response.refusal.delta":
      if (here?.part.type !== "refusal") throw new Error("a delta of another part");
      here.part.refusal += one.delta;
      break;
    case "response.refusal.done":
      if (here?.part.type !== "refusal") throw new Error("the end of another part");
      expect(one.refusal).toBe(here.part.refusal);
      break;
    case "response.content_part.done":
      expect(one.part).toEqual(here?.part);
      if (here !== undefined) here.isDone = true;
      break;
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta":
      item.args += one.delta;
      item.hasArgs = true;
      break;
    case "response.function_call_arguments.done":
      expect(one.arguments).toBe(item.args);
      expect(item.hasArgs, "a delta even for no arguments").toBe(true);
      break;
    case "response.custom_tool_call_input.done":
      expect(one.input).toBe(item.args);
      break;
    case "response.reasoning_summary_part.added":
      expect(item.summary).toBeNull();
      item.summary = "";
      break;
    case "response.reasoning_summary_text.delta":
      item.summary = (item.summary ?? "(no part)") + one.delta;
      break;
    case "response.reasoning_summary_text.done":
      expect(one.text).toBe(item.summary);
      break;
    case "response.reasoning_summary_part.done":
      expect(one.part.text).toBe(item.summary);
      break;
  }
}

/** Checks that an item in the terminal response equals the one of its events. */
function agree(followed: Followed | undefined, item: Item, { status }: AnyResponse): void {
  if (followed === undefined) throw new Error("an item that was never added");
  const { done, added } = followed;
  if (done !== null) expect(done).toEqual(item);
  else expect(item.status).toBe(status === "failed" ? item.status : "incomplete");
  if (status === "completed") expect(done).not.toBeNull();
  expect(outputItem.parse(item).id).toBe(added.id);
  switch (item.type) {
    case "message":
      expect(item.content).toEqual(followed.parts.map(({ part }) => part));
      if (done !== null) expect(followed.parts.every(({ isDone }) => isDone)).toBe(true);
      break;
    case "function_call":
      expect(item.arguments).toBe(followed.args);
      expect([item.call_id, item.name]).toEqual(
        added.type === "function_call" ? [added.call_id, added.name] : [],
      );
      break;
    case "custom_tool_call":
      expect(item.input).toBe(followed.args);
      break;
    case "reasoning":
      expect(item.summary.map(({ text }) => text).join("")).toBe(followed.summary ?? "");
      break;
  }
}
