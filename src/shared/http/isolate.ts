import type { Config } from "../config/config.ts";

type Part<T> = (config: Config) => T;

const isolates = new WeakMap<Config, Isolate>();

/** Values shared by an isolate's requests under one configuration, created on first use. */
export class Isolate {
  readonly #config: Config;
  readonly #parts = new Map<Part<unknown>, unknown>();

  private constructor(config: Config) {
    this.#config = config;
  }

  static of(config: Config): Isolate {
    const known = isolates.get(config);
    if (known !== undefined) return known;
    const fresh = new Isolate(config);
    isolates.set(config, fresh);
    return fresh;
  }

  get<T>(part: Part<T>): T {
    const known = this.#parts.get(part);
    if (known !== undefined) return known as T; // this part created it, so the type is right
    const fresh = part(this.#config);
    this.#parts.set(part, fresh);
    return fresh;
  }
}
