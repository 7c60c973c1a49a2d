import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import {
  parseItemId,
  parseStoredItems,
  listItemsOfTurn,
  parseStoredResponse,
} from "../stored-responses/items.ts";
import { RESPONSE_ID_PREFIX } from "../../shared/contracts/stored-responses.ts";
import type {
  StoredResponseQuery,
  StoredResponseResult,
} from "../../shared/contracts/stored-responses.ts";
import { creationTimeOfId } from "../../shared/id.ts";
import { isObject, listOf } from "../core/json-value.ts";
import type { KnownFields } from "../core/json-value.ts";
import type { JsonObject } from "../core/provider.ts";
import { INPUT_ITEMS_MAX } from "../protocols/responses/client-request.ts";

/** A request body with stored content in place of references. */
export type ExpandedBody = {
  readonly body: object;
  readonly before: number;
  /**
   * The request's own input items, with stored items instead of item references. Null if the input
   * is neither text nor a list of items.
   */
  readonly own: readonly JsonObject[] | null;
};

type StoredReferences = KnownFields<"previous_response_id" | "input">;

export function findStoredResponseReferences(body: object): StoredResponseQuery | null {
  const { previous_response_id: id, input }: StoredReferences = body;
  const previous =
    typeof id === "string" && creationTimeOfId(id, RESPONSE_ID_PREFIX) !== null ? id : null;
  const outputs = new Set<string>();
  const inputs = new Set<string>();
  for (const item of listOf(input).slice(0, INPUT_ITEMS_MAX)) {
    const place = isReference(item) ? itemPlaceOf(item) : null;
    if (place !== null) (place.of === "output" ? outputs : inputs).add(place.responseId);
  }
  if (previous === null && outputs.size === 0 && inputs.size === 0) return null;
  return { previous, outputs: [...outputs], inputs: [...inputs] };
}

/** Replaces references to stored responses with their content. */
export function expandStoredReferences(
  body: object,
  recalled: StoredResponseResult | undefined,
): Result<ExpandedBody> {
  const { previous_response_id: previous, input }: StoredReferences = body;
  const items =
    typeof input === "string" ? [{ type: "message", role: "user", content: input }] : input;
  if (!Array.isArray(items)) return success({ body, before: 0, own: null });
  const links = typeof previous === "string" ? (recalled?.links ?? null) : [];
  if (links === null) return responseNotFound(String(previous));
  const own = resolveReferences(items, recalled);
  if (!own.ok) return own;
  const before = links.flatMap(listItemsOfTurn);
  const isPlain = typeof input === "string" && before.length === 0;
  const whole = isPlain ? input : [...before, ...own.value];
  return success({ body: { ...body, input: whole }, before: before.length, own: own.value });
}

function resolveReferences(
  items: readonly unknown[],
  recalled: StoredResponseResult | undefined,
): Result<readonly JsonObject[]> {
  const own: JsonObject[] = [];
  for (const [index, item] of items.entries()) {
    const named = isReference(item) ? findReferencedItem(item, recalled) : null;
    if (named === null && isReference(item)) return itemNotFound(item, index);
    own.push(named ?? (item as JsonObject));
  }
  return success(own);
}

/**
 * Converts an error's `param` from the expanded body to the client's body. The expansion inserted
 * `before` items.
 */
export function toParamOfRequest(param: string | null, before: number): string | null {
  const [whole, index] = /^input\[(\d+)\]/.exec(param ?? "") ?? [];
  if (param === null || whole === undefined) return param;
  const at = Number(index) - before;
  return at < 0 ? "previous_response_id" : `input[${at}]${param.slice(whole.length)}`;
}

function isReference(item: unknown): item is JsonObject {
  if (!isObject(item)) return false;
  const type = item["type"] ?? null;
  return (
    type === "item_reference" ||
    (type === null && item["role"] === undefined && item["id"] !== undefined)
  );
}

function itemPlaceOf({ id }: JsonObject): ReturnType<typeof parseItemId> {
  return typeof id === "string" ? parseItemId(id) : null;
}

function findReferencedItem(
  reference: JsonObject,
  recalled: StoredResponseResult | undefined,
): JsonObject | null {
  const place = itemPlaceOf(reference);
  if (place === null || recalled === undefined) return null;
  const { responseId, of, index } = place;
  const text = (of === "output" ? recalled.outputs : recalled.inputs)[responseId];
  if (text === undefined) return null;
  const items =
    of === "output" ? parseStoredResponse(text).response.output : parseStoredItems(text);
  return items[index] ?? null;
}

const NOT_FOUND = "previous_response_not_found";
const STORAGE_RULES =
  "Responses are stored for the organization's setting keep_responses_hours (0 by default), and only for the key that created them";

/** Returns a failure with OpenAI's message, which clients match. */
function responseNotFound(id: string): Refusal {
  const message = `Previous response with id '${id.slice(0, 64)}' not found. ${STORAGE_RULES}. Send the whole input instead.`;
  return refuse({
    kind: "invalid_request",
    message,
    param: "previous_response_id",
    code: NOT_FOUND,
  });
}

function itemNotFound({ id }: JsonObject, index: number): Refusal {
  const shown = typeof id === "string" ? id.slice(0, 64) : "";
  const message = `Item with id '${shown}' not found. ${STORAGE_RULES}. Send the item itself, and set store to false (AI SDK: providerOptions.openai.store = false).`;
  return invalid(message, `input[${index}].id`);
}
