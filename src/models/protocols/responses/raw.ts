import { isObject, listOf } from "../../core/json-value.ts";
import type { Named } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

export type RawResponse = JsonObject &
  Named<"output" | "usage" | "status" | "incomplete_details" | "error">;
export type RawItem = JsonObject &
  Named<
    | "type"
    | "role"
    | "status"
    | "call_id"
    | "name"
    | "arguments"
    | "input"
    | "content"
    | "summary"
    | "encrypted_content"
  >;
type RawPart = JsonObject & Named<"type" | "text" | "refusal" | "logprobs" | "annotations">;
export type RawEvent = JsonObject &
  Named<
    "type" | "response" | "item" | "delta" | "output_index" | "annotation" | "logprobs" | "error"
  >;

export function itemsIn(list: unknown): readonly RawItem[] {
  return listOf(list).filter(isObject);
}

export function partsIn(list: unknown): readonly RawPart[] {
  return listOf(list).filter(isObject);
}
