import type { Config } from "../config/config.ts";

type Part<T> = (config: Config) => T;

const isolateByConfig = new WeakMap<Config, Isolate>();

/** Values that an isolate's requests with the same configuration share, created on first use. */
export class Isolate {
  readonly #config: Config;
  readonly #parts = new Map<Part<unknown>, unknown>();

  private constructor(config: Config) {
    this.#config = config;
  }

  static of(config: Config): Isolate {
    const known = isolateByConfig.get(config);
    if (known !== undefined) return known;
    const isolate = new Isolate(config);
    isolateByConfig.set(config, isolate);
    return isolate;
  }

  get<T>(part: Part<T>): T {
    const known = this.#parts.get(part);
    if (known !== undefined) return known as T; // the same function created it, so it is a `T`
    const value = part(this.#config);
    this.#parts.set(part, value);
    return value;
  }
}
