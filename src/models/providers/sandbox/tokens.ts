/**
 * Splits text into tokens of up to 8 characters and the preceding white space. The number of tokens
 * never exceeds the gateway's estimate.
 */
export function splitIntoTokens(text: string): string[] {
  const tokens: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = tokenEnd(text, start);
    tokens.push(text.slice(start, end));
    start = end;
  }
  return tokens;
}

export function countTokens(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at = tokenEnd(text, at)) count++;
  return count;
}

export function cutToTokens(text: string, tokensMax: number): string {
  let at = 0;
  for (let count = 0; count < tokensMax && at < text.length; count++) at = tokenEnd(text, at);
  return text.slice(0, at);
}

const TOKEN_CHARACTERS = 8;
const SHORT_CHARACTERS = 2;

function tokenEnd(text: string, start: number): number {
  for (let at = start; ;) {
    const word = skipSpaces(text, at);
    const end = wordEnd(text, word);
    const next = skipSpaces(text, end);
    if (next === text.length) return next;
    if (next === end || !isShortForeign(text, word, end)) return end;
    at = end;
  }
}

function skipSpaces(text: string, start: number): number {
  let at = start;
  while (at < text.length && isSpace(text.charCodeAt(at))) at++;
  return at;
}

function wordEnd(text: string, start: number): number {
  const endMax = Math.min(text.length, start + TOKEN_CHARACTERS);
  let at = start;
  while (at < endMax && !isSpace(text.charCodeAt(at))) at++;
  const splitsPair =
    at > start && isHighSurrogate(text.charCodeAt(at - 1)) && isLowSurrogate(text.charCodeAt(at));
  return splitsPair ? at + 1 : at;
}

function isShortForeign(text: string, start: number, end: number): boolean {
  if (end - start > SHORT_CHARACTERS) return false;
  for (let at = start; at < end; at++) if (text.charCodeAt(at) < 0x80) return false;
  return true;
}

function isSpace(code: number): boolean {
  return code <= 0x20 || code === 0xa0 || code === 0x3000;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}

/** Splits a text into words of up to 32 characters, each with the preceding white space. */
export function splitIntoWords(text: string): readonly string[] {
  return text.match(WORDS) ?? [];
}

/** Splits JSON into fragments of up to 12 characters, because JSON has few spaces. */
export function splitJsonFragments(json: string): readonly string[] {
  return json.match(FRAGMENTS) ?? [];
}

// The u flag keeps surrogate pairs together.
const WORDS = /\s*\S{1,32}|\s+/gu;
const FRAGMENTS = /[^]{1,12}/gu;
