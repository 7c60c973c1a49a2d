import { estimateTokens } from "./tokens.ts";

/**
 * Matches the pieces into which o200k_base splits text (openai/tiktoken). Backtracks at most one
 * step.
 */
const PIECE =
  /[^\r\n\p{L}\p{N}]?(?:[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)(?:'(?:[stmd]|re|ve|ll))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;
const LETTER = /[\p{L}\p{M}]/u;
const COMMON_WORDS: ReadonlySet<string> = new Set(
  "the of and to for that with que el la los las se un del por con para les le des du une et est dans pour os não uma da do y e o su ser todo toda dos das ao em ou au sur una como no der und".split(
    " ",
  ),
);
const RUSSIAN = /[ыэё]/;
const WIDE = /[^ -~]/;
const LATIN_END = 0x300;
const CYRILLIC_END = 0x530;
/**
 * Extra tokens of a word with non-ASCII letters: `from + each * letters`, from the first row whose
 * `end` is above the first such letter. Fitted by test/contract/count-tokens.test.ts.
 */
const SCRIPTS: readonly (readonly [end: number, from: number, each: number])[] = [
  [LATIN_END, 0.1, 0.16],
  [0x370, -0.6, 0.5], // combining marks
  [0x400, -1, 0.39],
  [CYRILLIC_END, -0.8, 0.25],
  [0x600, -1, 0.45],
  [0x700, -0.65, 0.28],
  [0xe00, -1, 0.33], // Indic scripts
  [0x1100, -1, 0.43], // Thai and others
  [0x2000, -0.8, 0.2], // Vietnamese
  [0x3100, -1, 0.72], // kana
  [0xac00, -0.9, 0.87], // Han
  [0xd7b0, -1, 0.71], // Hangul
];
const OTHER_SCRIPTS = [Infinity, -1, 0.6] as const;
const SAMPLE_CHARACTERS = 65_536;
const SLICE_CHARACTERS = 2048;

/** Estimates a text's o200k tokens for display, usually within 10%. Holds use `estimateTokens`. */
export function estimateTokensForDisplay(text: string): number {
  if (text.length <= SAMPLE_CHARACTERS) return countSample(text);
  const stepLength = (text.length * SLICE_CHARACTERS) / SAMPLE_CHARACTERS;
  const slices = Array.from({ length: SAMPLE_CHARACTERS / SLICE_CHARACTERS }, (_, at) =>
    text.slice(at * stepLength, at * stepLength + SLICE_CHARACTERS),
  );
  const sample = slices.join("\n");
  return (estimateTokens(text) * countSample(sample)) / estimateTokens(sample);
}

class WordStatistics {
  words = 0;
  #common = 0;
  #uppercase = 0;
  #russian = 0;
  #latin = 0;
  #cyrillic = 0;
  #other = 0;

  add(word: string, hasLeadingSpace: boolean): void {
    this.words++;
    const firstWideCode = WIDE.exec(word)?.[0].charCodeAt(0);
    if (firstWideCode === undefined) {
      if (COMMON_WORDS.has(word)) this.#common++;
      if (word.length > 1 && word === word.toUpperCase()) {
        this.#uppercase++;
        this.#other += (word.length - 1) * 0.1;
      } else this.#latin += Math.max(0, word.length - 5) * 0.13 + (hasLeadingSpace ? 0.02 : 0.09);
      return;
    }
    const [script, from, each] = SCRIPTS.find(([end]) => firstWideCode < end) ?? OTHER_SCRIPTS;
    const extra = Math.max(0, from + each * word.length);
    if (script === LATIN_END) this.#latin += extra;
    else if (script === CYRILLIC_END) {
      this.#cyrillic += extra;
      if (RUSSIAN.test(word)) this.#russian++;
    } else this.#other += extra;
  }

  extra(signTokens: number): number {
    const share = (count: number): number => count / Math.max(1, this.words);
    const proseFactor = Math.min(1.8, Math.max(1, 2 - share(signTokens + 2 * this.#uppercase)));
    const latinFactor = Math.max(0.3, proseFactor - 1.4 * Math.min(1, share(this.#common) / 0.27));
    const cyrillicFactor = share(this.#russian) > 0.03 ? 0.8 : 1.4;
    return this.#latin * latinFactor + this.#cyrillic * cyrillicFactor + this.#other;
  }
}

function countSample(text: string): number {
  const statistics = new WordStatistics();
  let pieces = 0;
  let signTokens = 0;
  for (const [piece] of text.matchAll(PIECE)) {
    pieces++;
    if (!LETTER.test(piece)) signTokens += extraSignTokens(piece);
    else {
      statistics.add(LETTER.test(piece.charAt(0)) ? piece : piece.slice(1), piece.startsWith(" "));
    }
  }
  return pieces + statistics.extra(pieces - statistics.words) + signTokens;
}

function extraSignTokens(piece: string): number {
  const signTokens = piece.trim().replaceAll(/(.)\1+/gs, "$1");
  const each = /^[^"'{}[\](),:;.=<>/]/.test(signTokens) ? 0.38 : 0.1;
  return Math.max(0, signTokens.length - 2) * each;
}
