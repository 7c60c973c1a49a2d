import { parseJson } from "./exact-json.ts";

/**
 * Parses JSON that the gateway stored in an object or D1. `T` must also fit what older releases
 * wrote.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type
export function parseStoredJson<T>(text: string): T {
  return parseJson(text) as T;
}
