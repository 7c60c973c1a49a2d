import { isObject, listOf } from "../../core/json-value.ts";
import type { KnownFields } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

export type RawResponse = JsonObject &
  KnownFields<"output" | "usage" | "status" | "incomplete_details" | "error">;
export type RawItem = JsonObject &
  KnownFields<
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
type RawPart = JsonObject & KnownFields<"type" | "text" | "refusal" | "logprobs" | "annotations">;
export type RawEvent = JsonObject &
  KnownFields<
    "type" | "response" | "item" | "delta" | "output_index" | "annotation" | "logprobs" | "error"
  >;

export function rawItemsOf(list: unknown): readonly RawItem[] {
  return listOf(list).filter(isObject);
}

export function rawPartsOf(list: unknown): readonly RawPart[] {
  return listOf(list).filter(isObject);
}

export function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => (value ?? null) !== null));
}
