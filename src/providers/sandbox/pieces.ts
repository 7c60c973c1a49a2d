/** Longest piece of text in one chunk: longer words, and scripts without spaces, come in parts. */
const WORD_CHARACTERS = 32;
/** JSON (structured answers and tool arguments) has few spaces, so it comes in short fragments. */
const FRAGMENT_CHARACTERS = 12;

/** A text as streamed word by word: each word with the white space before it; joined, the text. */
export function wordsOf(text: string): readonly string[] {
  return text.match(WORDS) ?? [];
}

/** JSON as streamed: fragments of a few characters; joined, the text. */
export function fragmentsOf(json: string): readonly string[] {
  return json.match(FRAGMENTS) ?? [];
}

// With the u flag a piece ends between code points, never within a surrogate pair.
const WORDS = new RegExp(`\\s*\\S{1,${WORD_CHARACTERS}}|\\s+`, "gu");
const FRAGMENTS = new RegExp(`[^]{1,${FRAGMENT_CHARACTERS}}`, "gu");
