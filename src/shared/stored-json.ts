import { parseJson } from "./exact-json.ts";

/**
 * What an object or the book keeps as JSON, read back. Its writer stands beside its reader and has checked it: what an
 * older release has written is read by the same type, which only grows by what may be absent.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- its caller says what it has written
export function storedJson<T>(text: string): T {
  return parseJson(text) as T;
}
