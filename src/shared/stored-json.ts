import { parseJson } from "./exact-json.ts";

/** Parses JSON that we wrote to an object or D1. Older releases used the same type. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type
export function storedJson<T>(text: string): T {
  return parseJson(text) as T;
}
