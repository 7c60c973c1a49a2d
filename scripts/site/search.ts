/** A section of a page in the search index. */
export type Entry = {
  readonly url: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
  /** Search words that the text lacks. */
  readonly keywords: string;
  /** The page's audience, or "" for everyone. */
  readonly audience: string;
};

const STOP_WORDS = new Set(
  "a an and are as at be by can do does for from has have how i if in is it its me my of on or the there to was what when where which who why will with you your".split(
    " ",
  ),
);
/** Words with the same meaning, by stem. */
const SAME: Readonly<Record<string, string>> = {
  buy: "price",
  cost: "charge",
  bill: "charge",
  pay: "charge",
  paid: "charge",
  verifi: "verify",
  hmac: "signatur",
  goes: "leav",
  disconnect: "leav",
  abort: "leav",
  cancel: "leav",
  gone: "leav",
  left: "leav",
  leave: "leav",
  customer: "client",
};
const ENDINGS = /(?:ations?|ings?|ings|edly|ed|es|s|e)$/;

/** Returns a word without its ending, so that `revoked`, `revoke` and `revocation` are similar. */
function stemOf(word: string): string {
  const short = word.length > 4 ? word.replace(ENDINGS, "") : word.replace(/s$/, "");
  return SAME[word] ?? SAME[short] ?? short;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/[^\p{L}\p{N}_.-]+/u).filter(Boolean);
}

/** Returns a word and its parts, as for `model_not_found` or `top-up`. */
function withParts(word: string): string[] {
  const parts = word.split(/[_-]+/).filter(Boolean);
  return parts.length > 1 ? [word, ...parts] : [word];
}

/** Returns the stems of a query. Skips stop words unless there are no other words. */
function queryStems(query: string): string[] {
  const words = wordsOf(query);
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).map(stemOf);
}

/** Weights of a word in a heading, in keywords, in a title and in the text. */
const WEIGHTS = { heading: 6, keywords: 6, title: 5, text: 1 } as const;
/** Weights of pages for the reader's audience, the API reference, and contributors' pages. */
const OWN = 1.25;
const OF_API = 0.45;
const OF_CODE = 0.7;

/** Weights of a query that equals a phrase of the keywords, and of one that equals a heading. */
const PHRASE = 1000;
const HEADING = 500;

/** Returns the comma-separated phrases of an entry's keywords. */
function phrasesOf({ keywords }: Entry): string[] {
  return keywords.toLowerCase().split(",").map((phrase) => phrase.trim());
}

/**
 * Returns the best `most` entries for a query. Entries with more of the words come first, after
 * those with a keyword phrase or heading equal to the query.
 */
export function search(
  entries: readonly Entry[],
  query: string,
  { audience = "", most = 12 }: { readonly audience?: string; readonly most?: number } = {},
): Entry[] {
  const words = queryStems(query);
  const exact = query.trim().toLowerCase();
  const scored = entries.map((entry) => {
    const isApi = entry.url.includes("/api");
    const part = (isApi ? OF_API : 1) * (entry.audience === "develop" ? OF_CODE : 1);
    const score = scoreOf(entry, words) * part * (entry.audience === audience ? OWN : 1);
    const isNamed = entry.heading.toLowerCase() === exact && entry.heading.length > 3;
    const isPhrase = phrasesOf(entry).includes(exact);
    const bonus = (isPhrase ? PHRASE : 0) + (isNamed ? HEADING : 0);
    return [score + (exact === "" ? 0 : bonus), entry] as const;
  });
  return scored
    .filter(([score]) => score > 0)
    .toSorted((a, b) => b[0] - a[0])
    .slice(0, most)
    .map(([, entry]) => entry);
}

function scoreOf(entry: Entry, words: readonly string[]): number {
  let sum = 0;
  let found = 0;
  for (const word of words) {
    let best = 0;
    for (const field of ["heading", "keywords", "title", "text"] as const) {
      const all = stemsOf(entry)[field];
      if (all.has(word)) best += WEIGHTS[field];
      else if (word.length > 3 && field !== "text" && hasPrefix(all, word)) best += WEIGHTS[field] / 2;
    }
    sum += best;
    if (best > 0) found += 1;
  }
  return found === 0 ? 0 : sum * (found / words.length) ** 2;
}

function hasPrefix(words: ReadonlySet<string>, word: string): boolean {
  for (const one of words) if (one.startsWith(word)) return true;
  return false;
}

function stemsIn(text: string): ReadonlySet<string> {
  return new Set(wordsOf(text).flatMap(withParts).map(stemOf));
}

type Stems = Readonly<Record<keyof typeof WEIGHTS, ReadonlySet<string>>>;
const stems = new WeakMap<Entry, Stems>();

function stemsOf(entry: Entry): Stems {
  const known = stems.get(entry);
  if (known !== undefined) return known;
  const made = {
    heading: stemsIn(entry.heading),
    keywords: stemsIn(entry.keywords),
    title: stemsIn(entry.title),
    text: stemsIn(entry.text),
  };
  stems.set(entry, made);
  return made;
}
