/**
 * A part of an answer that is said between a start and an end, each of them events to send. What comes for it before
 * it is open it keeps, and says then; after `close` nothing comes.
 */
export type Part = {
  /** Nothing that belongs to it can still come once something else has begun. */
  readonly isWhole: boolean;
  readonly isOpen: boolean;
  open(): string;
  /** `cut`: the answer ended in its midst. */
  close(cut: boolean): string;
};

/**
 * The parts of one streamed answer in the order in which they began, one open at a time, as dialects of blocks or items
 * want them: one that begins while another is in its midst waits until that is whole.
 */
export class BlockSequencer<P extends Part> {
  readonly #parts: P[] = [];
  /** The one that is open, or will be next. */
  #current = 0;

  /** All that began, also those that wait. */
  get parts(): readonly P[] {
    return this.#parts;
  }

  get last(): P | undefined {
    return this.#parts.at(-1);
  }

  /** Begins a part; what is to be said of that. */
  add(part: P): string {
    this.#parts.push(part);
    return this.advance();
  }

  /** Closes what is whole and has something after it, and opens what comes next. */
  advance(): string {
    let said = "";
    for (;;) {
      const part = this.#parts[this.#current];
      if (part === undefined) return said;
      if (!part.isOpen) said += part.open();
      if (this.#current === this.#parts.length - 1 || !part.isWhole) return said;
      said += part.close(false);
      this.#current++;
    }
  }

  /** Opens and closes all that is left. */
  end(isCut: (part: P) => boolean = () => false): string {
    let said = "";
    for (const part of this.#parts.slice(this.#current)) {
      if (!part.isOpen) said += part.open();
      said += part.close(isCut(part));
    }
    this.#current = this.#parts.length;
    return said;
  }
}
