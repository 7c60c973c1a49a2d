import type { Config } from "../config/config.ts";

/** Makes one of the things that an isolate keeps; its identity is the thing's name. */
type Part<T> = (config: Config) => T;

const isolates = new WeakMap<Config, Isolate>();

/**
 * What an isolate keeps from one request to the next under a configuration: bounds of what is in flight, callers
 * it has met, counts, what is sold. Each is made when it is first asked for; another configuration begins anew.
 */
export class Isolate {
  readonly #config: Config;
  readonly #parts = new Map<Part<unknown>, unknown>();

  private constructor(config: Config) {
    this.#config = config;
  }

  /** The isolate's keeping under a configuration. */
  static of(config: Config): Isolate {
    const known = isolates.get(config);
    if (known !== undefined) return known;
    const fresh = new Isolate(config);
    isolates.set(config, fresh);
    return fresh;
  }

  /** The one thing that `part` makes. */
  get<T>(part: Part<T>): T {
    const known = this.#parts.get(part);
    if (known !== undefined) return known as T; // by this part, so it is what this part makes
    const fresh = part(this.#config);
    this.#parts.set(part, fresh);
    return fresh;
  }
}
