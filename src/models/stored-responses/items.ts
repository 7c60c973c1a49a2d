import { storedJson } from "../../shared/stored-json.ts";
import { inputItemId } from "./item-ids.ts";
import type { Link } from "../../shared/contracts/stored-responses.ts";

/** An item of a conversation (openai npm, ResponseInputItem, ResponseOutputItem). */
type StoredItem = Readonly<Record<string, unknown>> & { readonly type?: string };

type ShownItem = StoredItem & { readonly id: string; readonly type: string };

export type StoredResponse = {
  readonly response: StoredItem & { readonly output: readonly ShownItem[] };
  readonly hidden: boolean;
};

export function parseStoredItems(input: Uint8Array): readonly StoredItem[] {
  return storedJson<StoredItem[]>(textOf(input));
}

export function parseStoredResponse(response: Uint8Array): StoredResponse {
  return storedJson<StoredResponse>(textOf(response));
}

export function itemsOfTurn({ input, response }: Link): readonly StoredItem[] {
  return [...parseStoredItems(input), ...parseStoredResponse(response).response.output];
}

export function responseView({ response, hidden }: StoredResponse, isWhole: boolean): StoredItem {
  if (!hidden || isWhole) return response;
  return { ...response, output: response.output.map(withoutThoughts) };
}

export function inputItems(links: readonly Link[]): readonly ShownItem[] {
  return links.flatMap((link, at) => {
    const given = parseStoredItems(link.input).map((item, index) =>
      shownItem(item, inputItemId(link.id, item["type"] ?? "message", index)),
    );
    if (at === links.length - 1) return given;
    const { response, hidden } = parseStoredResponse(link.response);
    const output = hidden ? response.output.map(withoutThoughts) : response.output;
    return [...given, ...output];
  });
}

function withoutThoughts(item: ShownItem): ShownItem {
  return item["type"] === "reasoning" ? { ...item, encrypted_content: null } : item;
}

/** Returns an item with its content as a list of parts, because clients don't expect a string. */
function shownItem(item: StoredItem, id: string): ShownItem {
  const { type = "message", role, content } = item;
  const whole = { status: "completed", ...item, type, id };
  if (typeof content !== "string") return whole;
  const part =
    role === "assistant"
      ? { type: "output_text", text: content, annotations: [], logprobs: [] }
      : { type: "input_text", text: content };
  return { ...whole, content: [part] };
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
