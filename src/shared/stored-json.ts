import { parseJson } from "./exact-json.ts";

/** Parses JSON that the gateway stored. `T` must also fit JSON of older releases. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows the type
export function parseStoredJson<T>(text: string): T {
  return parseJson(text) as T;
}
