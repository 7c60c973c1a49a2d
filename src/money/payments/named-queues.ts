/** A queue for each name. Work of the same name runs in order, one at a time. */
export class QueuesByName {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after all earlier work of this name, even if that failed. */
  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(name, settled);
    void this.#forget(name, settled);
    return mine;
  }

  async #forget(name: string, settled: Promise<unknown>): Promise<void> {
    await settled;
    if (this.#last.get(name) === settled) this.#last.delete(name);
  }
}
