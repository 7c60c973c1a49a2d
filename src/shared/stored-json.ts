import { parseJson } from "./exact-json.ts";

/** Parses JSON written by us to an object or the database. Older releases used the same type. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type
export function storedJson<T>(text: string): T {
  return parseJson(text) as T;
}
