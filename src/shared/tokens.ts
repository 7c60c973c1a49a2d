/**
 * Estimates a text's tokens. Multiplied by a model's `estimateFactor`, the estimate is an upper
 * bound for ordinary text. `utf8Bytes` is an upper bound for any text.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  let opaqueScannedTo = 0;
  let at = 0;
  while (at < text.length) {
    if (at >= opaqueScannedTo && isOpaque(classAt(text, at))) {
      opaqueScannedTo = runEnd(text, at, isOpaque);
      const opaqueCount = opaqueTokens(text, at, opaqueScannedTo);
      if (opaqueCount > 0) {
        tokens += opaqueCount;
        at = opaqueScannedTo;
        continue;
      }
    }
    const end = pieceEnd(text, at);
    tokens += pieceTokens(text, at, end);
    at = end;
  }
  return Math.ceil(tokens);
}

/** Returns a text's length in UTF-8 bytes. A lone surrogate counts as 3 bytes (U+FFFD). */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    if (isHighSurrogate(unit) && isLowSurrogate(text.charCodeAt(at + 1))) at++; // a surrogate pair has 4 bytes
  }
  return bytes;
}

const OPAQUE_CHARACTERS_MIN = 20;
const OPAQUE_DIGIT_SHARE = 1 / 12;

function opaqueTokens(text: string, start: number, end: number): number {
  const length = end - start;
  if (length < OPAQUE_CHARACTERS_MIN) return 0;
  let [digits, upper, lower] = [0, 0, 0];
  for (let at = start; at < end; at++) {
    const kind = classAt(text, at);
    if (kind === DIGIT) digits++;
    else if (kind === UPPER) upper++;
    else if (kind === LOWER) lower++;
  }
  if (digits < length * OPAQUE_DIGIT_SHARE) return 0;
  return length / (upper > 0 && lower > 0 ? 1.4 : 1.6);
}

function pieceEnd(text: string, at: number): number {
  const kind = classAt(text, at);
  if (isLetter(kind)) return wordEnd(text, at);
  if (isPunctuation(kind)) return runEnd(text, at, isPunctuation);
  if (kind !== 0) {
    let end = at + 1;
    while (classAt(text, end) === kind) end++;
    return end;
  }
  const unit = text.charCodeAt(at);
  if (isGreekOrCyrillic(unit)) {
    let end = at + 1;
    while (isGreekOrCyrillic(text.charCodeAt(end))) end++;
    return end;
  }
  return at + (isHighSurrogate(unit) && isLowSurrogate(text.charCodeAt(at + 1)) ? 2 : 1);
}

function pieceTokens(text: string, start: number, end: number): number {
  const length = end - start;
  const kind = classAt(text, start);
  if (isLetter(kind)) return length <= 7 ? 1 : 1 + Math.ceil((length - 7) / 4);
  if (kind === DIGIT) return Math.ceil(length / 3) + (classAt(text, start - 1) === SPACE ? 1 : 0);
  if (kind === SPACE) return length === 1 ? 0 : spaceTokens(text, start, end);
  if (kind === NEWLINE) return length === 1 ? 1 : newlineTokens(text, start, end);
  if (kind !== 0) return length === 1 ? 0.95 : Math.ceil(length / 2);
  const unit = text.charCodeAt(start);
  return isGreekOrCyrillic(unit) ? length / 2.6 : wideTokens(unit);
}

const BLANKS_PER_TOKEN = 16;

function spaceTokens(text: string, start: number, end: number): number {
  let tokens = 0;
  for (let at = start; at < end;) {
    const from = at;
    at = sameCharacterEnd(text, from, end);
    tokens += Math.ceil((at - from) / BLANKS_PER_TOKEN);
  }
  return tokens;
}

/** Returns the tokens of a run of line ends. 16 LF, four CR LF or one other CR make one token. */
function newlineTokens(text: string, start: number, end: number): number {
  let tokens = 0;
  for (let at = start; at < end;) {
    const from = at;
    at = sameCharacterEnd(text, from, end);
    if (text.charCodeAt(from) === 10) tokens += Math.ceil((at - from) / BLANKS_PER_TOKEN);
    else if (at - from === 1 && at < end) {
      at++;
      tokens += 1 / 4;
    } else tokens += at - from;
  }
  return Math.max(1, tokens);
}

function sameCharacterEnd(text: string, start: number, end: number): number {
  const unit = text.charCodeAt(start);
  let at = start + 1;
  while (at < end && text.charCodeAt(at) === unit) at++;
  return at;
}

/** Estimated tokens per character, by code point. */
const WIDE: readonly (readonly [from: number, tokens: number])[] = [
  [0x80, 0.9],
  [0x250, 1.5], // phonetic letters, combining marks
  [0x530, 0.75], // Armenian, Hebrew, Arabic
  [0x700, 2],
  [0x900, 0.75], // Indic scripts, Thai
  [0x1100, 2],
  [0x1e00, 0.9], // Vietnamese, symbols
  [0x2300, 1.5],
  [0x3000, 0.9],
  [0x3040, 0.75], // kana
  [0x3100, 2],
  [0x4e00, 0.9], // Han
  [0xa000, 2],
  [0xac00, 0.8], // Hangul
  [0xd7b0, 2],
  [0xd800, 3], // surrogates
  [0xe000, 2],
  [0xfe00, 0.9], // variation selectors, full width
  [0xff60, 2],
];
const WIDE_TOKENS = Float64Array.from({ length: 0x1000 }, (_, blockIndex) =>
  wideTokensFrom(blockIndex * 16),
);

function wideTokensFrom(unit: number): number {
  return WIDE.findLast(([from]) => from <= unit)?.[1] ?? 1;
}

function wideTokens(unit: number): number {
  return WIDE_TOKENS[unit >> 4] ?? 1;
}

function wordEnd(text: string, start: number): number {
  let before = classAt(text, start);
  for (let end = start + 1; ; end++) {
    const kind = classAt(text, end);
    if (!isLetter(kind) || (kind === UPPER && before === LOWER)) return end;
    before = kind;
  }
}

function runEnd(text: string, start: number, isInRun: (kind: number) => boolean): number {
  let end = start + 1;
  while (isInRun(classAt(text, end))) end++;
  return end;
}

/** Classes of ASCII characters, for a table four times as fast as comparisons. */
const UPPER = 1;
const LOWER = 2;
const DIGIT = 3;
const SPACE = 4;
const NEWLINE = 5;
const PUNCTUATION = 6;
const JOINER = 7;
const CLASSES = Uint8Array.from({ length: 128 }, (_, unit) => asciiClass(unit));

function asciiClass(unit: number): number {
  if (unit >= 65 && unit <= 90) return UPPER;
  if (unit >= 97 && unit <= 122) return LOWER;
  if (unit >= 48 && unit <= 57) return DIGIT;
  if (unit === 32 || unit === 9) return SPACE;
  if (unit === 10 || unit === 13) return NEWLINE;
  return [43, 45, 47, 61, 95].includes(unit) ? JOINER : PUNCTUATION;
}

function classAt(text: string, at: number): number {
  return at < text.length ? (CLASSES[text.charCodeAt(at)] ?? 0) : 0;
}

const isLetter = (kind: number): boolean => kind === UPPER || kind === LOWER;
const isPunctuation = (kind: number): boolean => kind === PUNCTUATION || kind === JOINER;
const isOpaque = (kind: number): boolean => (kind >= UPPER && kind <= DIGIT) || kind === JOINER;
const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
const isGreekOrCyrillic = (unit: number): boolean => unit >= 0x370 && unit < 0x480;
