import { ID_CHARACTERS } from "../../shared/id.ts";
import { RESPONSE_ID_PREFIX } from "../../shared/contracts/stored-responses.ts";

type ItemPlace = {
  readonly responseId: string;
  readonly of: "output" | "input";
  readonly index: number;
};

const ITEM = new RegExp(`^[a-z]{2,4}_([0-9A-Za-z]{${ID_CHARACTERS}})(i?)(\\d{1,5})$`);

/** Parses the ID of an item. Returns null if the gateway didn't create it. */
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

export function inputItemId(responseId: string, type: unknown, index: number): string {
  const prefix = PREFIX_BY_TYPE[String(type)] ?? "fc";
  return `${prefix}_${responseId.slice(RESPONSE_ID_PREFIX.length)}i${index}`;
}
