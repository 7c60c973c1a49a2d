import { base62Hash } from "../../shared/hash.ts";

const NAME_MAX = 64;
const VALID_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

export function fittingToolName(name: string): string {
  if (VALID_NAME.test(name)) return name;
  const readable = name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(-(NAME_MAX - 9));
  return `${base62Hash(name, 8)}_${readable}`;
}

export class FittingToolNames {
  readonly origins = new Map<string, string>();
  readonly #fittingByName = new Map<string, string>();

  constructor(names: Iterable<string>) {
    const all = new Set(names);
    const takenNames = new Set(all);
    for (const name of all) {
      let uniqueName = fittingToolName(name);
      if (uniqueName === name) continue;
      for (let attempt = 1; takenNames.has(uniqueName); attempt++) {
        uniqueName = fittingToolName(`${attempt} ${name}`);
      }
      takenNames.add(uniqueName);
      this.#fittingByName.set(name, uniqueName);
      this.origins.set(uniqueName, name);
    }
  }

  nameFor(name: string): string {
    return this.#fittingByName.get(name) ?? name;
  }
}
