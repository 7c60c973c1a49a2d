export type SequencedPart = {
  readonly isWhole: boolean;
  readonly isOpen: boolean;
  open(): string;
  close(cut: boolean): string;
};

/** Writes the parts of a streamed response one after another. */
export class BlockSequencer<P extends SequencedPart> {
  readonly parts: P[] = [];
  #current = 0;

  get last(): P | undefined {
    return this.parts.at(-1);
  }

  add(part: P): string {
    this.parts.push(part);
    return this.advance();
  }

  advance(): string {
    let text = "";
    for (;;) {
      const part = this.parts[this.#current];
      if (part === undefined) return text;
      if (!part.isOpen) text += part.open();
      if (this.#current === this.parts.length - 1 || !part.isWhole) return text;
      text += part.close(false);
      this.#current++;
    }
  }

  end(isCutOff: (part: P) => boolean = () => false): string {
    let text = "";
    for (const part of this.parts.slice(this.#current)) {
      if (!part.isOpen) text += part.open();
      text += part.close(isCutOff(part));
    }
    this.#current = this.parts.length;
    return text;
  }
}
