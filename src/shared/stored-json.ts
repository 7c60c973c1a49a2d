import { parseJson } from "./exact-json.ts";

/**
 * Reads JSON that an object or the database stores. The writer has validated it, and older releases use the
 * same type.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- its caller says what it has written
export function storedJson<T>(text: string): T {
  return parseJson(text) as T;
}
