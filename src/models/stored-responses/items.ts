import { ID_CHARACTERS } from "../../shared/id.ts";
import { RESPONSE_ID_PREFIX } from "../../shared/contracts/stored-responses.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import type { ConversationTurn } from "../../shared/contracts/stored-responses.ts";

type ItemPlace = {
  readonly responseId: string;
  readonly of: "output" | "input";
  readonly index: number;
};

const ITEM = new RegExp(`^[a-z]{2,4}_([0-9A-Za-z]{${ID_CHARACTERS}})(i?)(\\d{1,5})$`);

/** Parses an item's ID. Returns null if the gateway didn't create it. */
export function parseItemId(id: string): ItemPlace | null {
  const [, own, input, index] = ITEM.exec(id) ?? [];
  if (own === undefined) return null;
  const of = input === "" ? "output" : "input";
  return { responseId: RESPONSE_ID_PREFIX + own, of, index: Number(index) };
}

const PREFIX_BY_TYPE: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  function_call_output: "fco",
};

export function createInputItemId(responseId: string, type: unknown, index: number): string {
  const prefix = PREFIX_BY_TYPE[String(type)] ?? "fc";
  return `${prefix}_${responseId.slice(RESPONSE_ID_PREFIX.length)}i${index}`;
}

/** An item of a conversation (openai npm, ResponseInputItem, ResponseOutputItem). */
type StoredItem = Readonly<Record<string, unknown>> & { readonly type?: string };

type ListedItem = StoredItem & { readonly id: string; readonly type: string };

/** If `hidden`, encrypted reasoning isn't sent, because the client didn't request it. */
export type StoredResponse = {
  readonly response: StoredItem & { readonly output: readonly ListedItem[] };
  readonly hidden: boolean;
};

export function parseStoredItems(input: Uint8Array): readonly StoredItem[] {
  return parseStoredJson<StoredItem[]>(decodeUtf8(input));
}

export function parseStoredResponse(response: Uint8Array): StoredResponse {
  return parseStoredJson<StoredResponse>(decodeUtf8(response));
}

export function listItemsOfTurn({ input, response }: ConversationTurn): readonly StoredItem[] {
  return [...parseStoredItems(input), ...parseStoredResponse(response).response.output];
}

/** Returns a response for a client. Omits `hidden` reasoning unless `isWhole` is true. */
export function toResponseView({ response, hidden }: StoredResponse, isWhole: boolean): StoredItem {
  if (!hidden || isWhole) return response;
  return { ...response, output: response.output.map(withoutEncryptedReasoning) };
}

/** Returns the items of earlier turns and the last turn's input. */
export function listInputItems(links: readonly ConversationTurn[]): readonly ListedItem[] {
  return links.flatMap((link, at) => {
    const input = parseStoredItems(link.input).map((item, index) =>
      toListedItem(item, createInputItemId(link.id, item["type"] ?? "message", index)),
    );
    if (at === links.length - 1) return input;
    const { response, hidden } = parseStoredResponse(link.response);
    const output = hidden ? response.output.map(withoutEncryptedReasoning) : response.output;
    return [...input, ...output];
  });
}

function withoutEncryptedReasoning(item: ListedItem): ListedItem {
  return item["type"] === "reasoning" ? { ...item, encrypted_content: null } : item;
}

/** Returns an item with its content as a list of parts, because clients don't expect a string. */
function toListedItem(item: StoredItem, id: string): ListedItem {
  const { type = "message", role, content } = item;
  const whole = { status: "completed", ...item, type, id };
  if (typeof content !== "string") return whole;
  const part =
    role === "assistant"
      ? { type: "output_text", text: content, annotations: [], logprobs: [] }
      : { type: "input_text", text: content };
  return { ...whole, content: [part] };
}

export function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
