import { OTHER_TAG_VALUE, TAG_SETS_MAX } from "../../../shared/tags.ts";
import type { Tags } from "../../../shared/tags.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";

/** The tag combinations (as JSON) with separate usage totals on one day. */
export class TagCombinationsOfDay {
  readonly #sets: Set<string>;
  #values: Map<string, Set<string>> | null = null;

  constructor(known: Iterable<string>) {
    this.#sets = new Set(known);
  }

  /**
   * Returns the tag combination under which to count a request. After `TAG_SETS_MAX` combinations
   * in a day, replaces new values with `other`.
   */
  assignGroup(set: string): string {
    if (this.#sets.has(set)) return set;
    if (this.#sets.size < TAG_SETS_MAX) return this.#add(set);
    const known = this.#knownValues();
    const tags = Object.entries(parseStoredJson<Tags>(set));
    const reduced = jsonOf(
      tags.map(([key, value]) => [
        key,
        known.get(key)?.has(value) === true ? value : OTHER_TAG_VALUE,
      ]),
    );
    if (this.#sets.has(reduced) || this.#sets.size < 2 * TAG_SETS_MAX) return this.#add(reduced);
    return this.#add(jsonOf(tags.map(([key]) => [key, OTHER_TAG_VALUE])));
  }

  #add(set: string): string {
    this.#sets.add(set);
    return set;
  }

  #knownValues(): ReadonlyMap<string, ReadonlySet<string>> {
    if (this.#values !== null) return this.#values;
    const values = new Map<string, Set<string>>();
    for (const set of this.#sets) {
      for (const [key, value] of Object.entries(parseStoredJson<Tags>(set))) {
        const those = values.get(key) ?? new Set();
        values.set(key, those.add(value));
      }
    }
    this.#values = values;
    return values;
  }
}

function jsonOf(tags: readonly (readonly [string, string])[]): string {
  return JSON.stringify(Object.fromEntries(tags));
}
