import { readSource } from "./tidy-source.ts";
import type { Files } from "./tidy-rules.ts";

/** Counts of things in src that should decrease. Each number is a maximum in tidy.test.ts. */
type Counts = {
  /** Type assertions by `as`, without `as const` and renamed imports. */
  readonly casts: number;
  /**
   * Accesses such as `["x"]` that a schema or type could replace, in the protocols, providers, core
   * and endpoints of models.
   */
  readonly lookups: number;
  /** Names of exported types that two files use for different things. */
  readonly alike: readonly string[];
  /** Names in `ONE_MEANING` that two files declare, exported or not. */
  readonly ambiguous: readonly string[];
};

/** Names with one meaning throughout src. */
const ONE_MEANING: ReadonlySet<string> = new Set([
  "Asked",
  "Row",
  "Known",
  "Said",
  "Choice",
  "Place",
]);
const READERS = /^src\/models\/(?:protocols|providers|core|endpoints)\//;
/** Not `as const`, a variable of that name, or the key of a mapped type. */
const CAST = /(?<!\[\w+ in [^\]]{0,80})\sas (?!const\b)(?=[\w({[])/g;
const LOOKUP = /(?<=([\w$]+|[)\]])(?:\?\.)?)\[ +\]/g;
const DECLARED = /^(export )?(?:type|class|interface) (\w+)/gm;

export function countsOf(files: Files): Counts {
  let casts = 0;
  let lookups = 0;
  const exported = new Map<string, number>();
  const declared = new Map<string, number>();
  for (const [path, text] of Object.entries(files)) {
    if (path.endsWith(".d.ts")) continue;
    const { code } = readSource(path, text);
    const own = code.replace(/^(?:import|export) [^;]*?\bfrom\b/gm, "");
    casts += [...own.matchAll(CAST)].length;
    if (READERS.test(path)) lookups += [...code.matchAll(LOOKUP)].filter(isValue(text)).length;
    for (const [, isExported, name = ""] of code.matchAll(DECLARED)) {
      if (isExported !== undefined) exported.set(name, (exported.get(name) ?? 0) + 1);
      declared.set(name, (declared.get(name) ?? 0) + 1);
    }
  }
  return {
    casts,
    lookups,
    alike: [...exported].flatMap(([name, times]) => (times > 1 ? [name] : [])).toSorted(),
    ambiguous: [...declared].flatMap(([name, times]) =>
      times > 1 && ONE_MEANING.has(name) ? [name] : [],
    ),
  };
}

/** Reports whether a lookup is of a value's field, because types begin with a capital letter. */
function isValue(text: string): (match: RegExpExecArray) => boolean {
  return ({ index, 1: before = "" }) =>
    text.charAt(index + 1) === '"' && !/^[A-Z][a-z]/.test(before);
}
