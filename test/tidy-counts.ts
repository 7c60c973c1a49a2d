import { readSource } from "./tidy-source.ts";
import type { Files } from "./tidy-rules.ts";

/** What src has of things that are to become fewer; each number is a ratchet in tidy.test.ts. */
type Counts = {
  /** Assertions of a type by `as`, `as const` and renamed imports apart. */
  readonly casts: number;
  /** Accesses as `["x"]` to what a schema or a shape could have read, in the protocols, providers, core and endpoints of models. */
  readonly lookups: number;
  /** Names of exported types that two files give to different things. */
  readonly alike: readonly string[];
  /** Names in `ONE_MEANING` that two files declare, exported or not. */
  readonly ambiguous: readonly string[];
};

/** Words that mean one thing each wherever they stand. */
const ONE_MEANING: ReadonlySet<string> = new Set([
  "Asked",
  "Row",
  "Known",
  "Said",
  "Choice",
  "Place",
]);
const READERS = /^src\/models\/(?:protocols|providers|core|endpoints)\//;
/** Not `as const`, a variable of that name, nor the key of a mapped type. */
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

/** Whether what is looked up is a field of a value: a type's begins with a capital. */
function isValue(text: string): (match: RegExpExecArray) => boolean {
  return ({ index, 1: before = "" }) =>
    text.charAt(index + 1) === '"' && !/^[A-Z][a-z]/.test(before);
}
