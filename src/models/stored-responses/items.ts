import { storedJson } from "../../shared/stored-json.ts";
import { inputItemId } from "./item-ids.ts";
import type { Link } from "../../shared/contracts/stored-responses.ts";

/** An item of a conversation (openai npm, ResponseInputItem, ResponseOutputItem). */
export type Item = Readonly<Record<string, unknown>>;

export type StoredResponse = {
  readonly response: Item & { readonly output: readonly Item[] };
  readonly hidden: boolean;
};

export function itemsIn(input: Uint8Array): readonly Item[] {
  return storedJson<Item[]>(textOf(input));
}

export function responseIn(response: Uint8Array): StoredResponse {
  return storedJson<StoredResponse>(textOf(response));
}

export function itemsOfLink({ input, response }: Link): readonly Item[] {
  return [...itemsIn(input), ...responseIn(response).response.output];
}

export function responseView({ response, hidden }: StoredResponse, isWhole: boolean): Item {
  if (!hidden || isWhole) return response;
  return { ...response, output: response.output.map(withoutThoughts) };
}

export function inputItems(links: readonly Link[]): readonly (Item & { readonly id: string })[] {
  return links.flatMap((link, at) => {
    const given = itemsIn(link.input).map((item, index) =>
      shownItem(item, inputItemId(link.id, item["type"] ?? "message", index)),
    );
    if (at === links.length - 1) return given;
    const { response, hidden } = responseIn(link.response);
    const output = hidden ? response.output.map(withoutThoughts) : response.output;
    return [...given, ...(output as (Item & { readonly id: string })[])];
  });
}

function withoutThoughts(item: Item): Item {
  return item["type"] === "reasoning" ? { ...item, encrypted_content: null } : item;
}

/** Returns an item with a list of parts, which readers expect instead of plain text. */
function shownItem(item: Item, id: string): Item & { readonly id: string } {
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
