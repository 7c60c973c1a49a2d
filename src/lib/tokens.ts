/**
 * Estimates tokens without a tokenizer, in one pass and without tables (the `est2` rules of
 * reference/providers.md 4.2). Times a model's `estimateFactor` it bounds ordinary text; machine
 * noise can still beat it, the hard bound of every byte-level tokenizer is `utf8Bytes`.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  let opaqueScannedTo = 0;
  let at = 0;
  while (at < text.length) {
    if (at >= opaqueScannedTo && isOpaque(text.charCodeAt(at))) {
      opaqueScannedTo = runEnd(text, at, isOpaque);
      const opaque = opaqueTokens(text, at, opaqueScannedTo);
      if (opaque > 0) {
        tokens += opaque;
        at = opaqueScannedTo;
        continue;
      }
    }
    const end = pieceEnd(text, at);
    tokens += pieceTokens(text, at, end);
    at = end;
  }
  return Math.ceil(tokens - 1e-9); // 0.75 + 0.25 style sums must not round up on float dust
}

/** Bytes of the text in UTF-8, without encoding it; a lone surrogate counts 3 (U+FFFD). */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    if (isHighSurrogate(unit) && isLowSurrogate(text.charCodeAt(at + 1))) at++; // 4 bytes in 2 units
  }
  return bytes;
}

const OPAQUE_CHARACTERS_MIN = 20;
const OPAQUE_DIGIT_SHARE = 1 / 12;

/** Tokens of base64, hex, ids and the like; 0 when the run is ordinary text. */
function opaqueTokens(text: string, start: number, end: number): number {
  const length = end - start;
  if (length < OPAQUE_CHARACTERS_MIN) return 0;
  let [digits, upper, lower] = [0, 0, 0];
  for (let at = start; at < end; at++) {
    const unit = text.charCodeAt(at);
    if (isDigit(unit)) digits++;
    else if (isUpper(unit)) upper++;
    else if (isLower(unit)) lower++;
  }
  if (digits < length * OPAQUE_DIGIT_SHARE) return 0;
  return length / (upper > 0 && lower > 0 ? 1.4 : 1.6);
}

/** Where the run of like characters that starts at `at` ends; a word also ends at a camelCase hump. */
function pieceEnd(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (isLetter(first)) return wordEnd(text, at);
  if (isDigit(first)) return runEnd(text, at, isDigit);
  if (isSpace(first)) return runEnd(text, at, isSpace);
  if (isNewline(first)) return runEnd(text, at, isNewline);
  if (first < 0x80) return runEnd(text, at, isPunctuation);
  if (isGreekOrCyrillic(first)) return runEnd(text, at, isGreekOrCyrillic);
  const pair = isHighSurrogate(first) && isLowSurrogate(text.charCodeAt(at + 1));
  return at + (pair ? 2 : 1);
}

function pieceTokens(text: string, start: number, end: number): number {
  const first = text.charCodeAt(start);
  const length = end - start;
  if (isLetter(first)) return length <= 7 ? 1 : 1 + Math.ceil((length - 7) / 4);
  if (isDigit(first)) {
    return Math.ceil(length / 3) + (start > 0 && isSpace(text.charCodeAt(start - 1)) ? 1 : 0);
  }
  if (isSpace(first)) return length === 1 ? 0 : Math.ceil(length / 16);
  if (isNewline(first)) return 1;
  if (first < 0x80) return length === 1 ? 0.95 : Math.ceil(length / 2);
  return isGreekOrCyrillic(first) ? length / 2.6 : wideTokens(first);
}

/** Tokens of one code point outside ASCII, Greek and Cyrillic. */
function wideTokens(unit: number): number {
  if (unit < 0x250) return 0.9;
  if (unit < 0x1100) return 0.75;
  if (unit >= 0x3040 && unit <= 0x30ff) return 0.75; // kana
  if (unit <= 0x11ff || (unit >= 0xac00 && unit <= 0xd7af)) return 0.8; // Hangul
  return unit >= 0xd800 && unit <= 0xdfff ? 3 : 0.9;
}

function wordEnd(text: string, start: number): number {
  let end = start + 1;
  while (isLetter(text.charCodeAt(end))) {
    if (isUpper(text.charCodeAt(end)) && isLower(text.charCodeAt(end - 1))) return end;
    end++;
  }
  return end;
}

function runEnd(text: string, start: number, belongs: (unit: number) => boolean): number {
  let end = start + 1;
  while (end < text.length && belongs(text.charCodeAt(end))) end++;
  return end;
}

// charCodeAt past the end is NaN, and every comparison with NaN is false.
const isUpper = (unit: number): boolean => unit >= 65 && unit <= 90;
const isLower = (unit: number): boolean => unit >= 97 && unit <= 122;
const isLetter = (unit: number): boolean => isUpper(unit) || isLower(unit);
const isDigit = (unit: number): boolean => unit >= 48 && unit <= 57;
const isSpace = (unit: number): boolean => unit === 32 || unit === 9;
const isNewline = (unit: number): boolean => unit === 10 || unit === 13;
const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
const isGreekOrCyrillic = (unit: number): boolean => unit >= 0x370 && unit <= 0x52f;

function isOpaque(unit: number): boolean {
  // + / - = _
  return (
    isLetter(unit) ||
    isDigit(unit) ||
    unit === 43 ||
    unit === 47 ||
    unit === 45 ||
    unit === 61 ||
    unit === 95
  );
}

function isPunctuation(unit: number): boolean {
  return unit < 0x80 && !isLetter(unit) && !isDigit(unit) && !isSpace(unit) && !isNewline(unit);
}
