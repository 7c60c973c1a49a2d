/** What has no word in the core, so that only a route of this dialect can do the request. */
export type Lack = { readonly param: string; readonly message: string };

/** What a conversion to the core leaves behind. */
export class Losses {
  /** Names of what was left out, for `x-dropped`. */
  readonly dropped = new Set<string>();
  #lack: Lack | null = null;

  /** The first thing that cannot be converted. */
  get lack(): Lack | null {
    return this.#lack;
  }

  cannot(param: string, problem: string): void {
    this.#lack ??= { param, message: `${param}: ${problem}` };
  }
}
