import { hashedBase62 } from "../../shared/hash.ts";

/** As long as every host takes the name of a function. */
const NAME_MAX = 64;
const FITTING = /^[a-zA-Z0-9_-]{1,64}$/;

/** A tool's name as every host takes it, the same for the same name; its end stays readable. */
export function fittingName(name: string): string {
  if (FITTING.test(name)) return name;
  const readable = name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(-(NAME_MAX - 9));
  return `${hashedBase62(name, 8)}_${readable}`;
}

/** What the tools of one request are called where names must fit; no two are called the same. */
export class ToolNames {
  /** The client's name by the one that is sent, of those that differ. */
  readonly origins = new Map<string, string>();
  readonly #fitting = new Map<string, string>();

  constructor(names: Iterable<string>) {
    const all = new Set(names);
    const taken = new Set(all);
    for (const name of all) {
      let fitting = fittingName(name);
      if (fitting === name) continue;
      for (let turn = 1; taken.has(fitting); turn++) fitting = fittingName(`${turn} ${name}`);
      taken.add(fitting);
      this.#fitting.set(name, fitting);
      this.origins.set(fitting, name);
    }
  }

  /** The name that is sent. */
  fitting(name: string): string {
    return this.#fitting.get(name) ?? name;
  }
}
