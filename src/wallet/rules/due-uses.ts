/** Once in so long of use a key's record is refreshed, and its use noted in the book; a last use waits no longer. */
export const REFRESH_MS = 60_000;

/** Keys, by hash, with a use that the book may lack, and when it is to be noted there (Unix ms). */
export class DueUses {
  readonly #due = new Map<string, number>();
  /** None is due before; Infinity when there is none. */
  next = Infinity;

  /** The earliest time stands. */
  add(hash: string, dueAt: number): void {
    if (this.#due.has(hash)) return;
    this.#due.set(hash, dueAt);
    this.next = Math.min(this.next, dueAt);
  }

  delete(hash: string): void {
    this.#due.delete(hash);
    if (this.#due.size === 0) this.next = Infinity;
  }

  /** Removes and returns at most `max` that are due. */
  take(nowMs: number, max: number): string[] {
    if (this.next > nowMs) return [];
    const due = [...this.#due].filter(([, at]) => at <= nowMs).slice(0, max);
    for (const [hash] of due) this.#due.delete(hash);
    this.next = Math.min(Infinity, ...this.#due.values());
    return due.map(([hash]) => hash);
  }
}
