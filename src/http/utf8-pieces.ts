const MARK = "\ufeff";

/**
 * Decodes UTF-8 that arrives in pieces, cut anywhere. One byte order mark before all of it is left out
 * (Encoding Standard, "UTF-8 decode"); every other U+FEFF is text. workerd's own TextDecoder takes
 * the first at the beginning of any piece for that mark.
 */
export class Utf8Pieces {
  readonly #decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
  #begun = false;

  /** What these bytes complete. */
  decode(bytes: Uint8Array | undefined): string {
    return this.#unmarked(this.#decoder.decode(bytes, { stream: true }));
  }

  /** What the end leaves incomplete, as U+FFFD. */
  end(): string {
    return this.#unmarked(this.#decoder.decode());
  }

  #unmarked(text: string): string {
    if (this.#begun || text === "") return text;
    this.#begun = true;
    return text.startsWith(MARK) ? text.slice(MARK.length) : text;
  }
}
