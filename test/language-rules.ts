/** A text of the repository: its place (`docs/keys.md:12`), its kind, and the text itself. */
type Text = {
  readonly kind: "sentence" | "cell" | "doc comment" | "comment" | "test name" | "identifier";
  readonly place: string;
  readonly text: string;
};
/** A rule of the language guide with the texts that it applies to. */
export type Rule = {
  readonly name: string;
  readonly kinds: readonly Text["kind"][];
  readonly isBroken: (text: string) => boolean;
};
/** The share of texts that break a rule, in percent, and the texts themselves. */
type Finding = { readonly percent: number; readonly faults: readonly string[] };

const PROSE = ["sentence", "cell", "doc comment", "comment"] as const;
const HEADLESS =
  /^(?:\*\*)?(?:What|Who|Whom|Whose|Whoever|Whatever|Where|Which|That which)\b(?!.*\?)/;
const BAD_START =
  /^(?:What|Who|Whom|Whose|Where|Which|How|Why|Of|By|From|To|In|At|On|With|Without|Beside|Beyond|Before|After|Up to|Until|As|So|That|Those|It|Its|They|These|One that|Another|The same|None|Nobody|Nothing|Null|False|True|There|For|Not|Only|And|Or|But|Also|Else|Here|Then)\b/;
const FRAGMENT =
  /^(?:of|by|for|from|with|without|in|at|on|to|that|where|when|what|who|whose|which|but|not|only|also|is|are|was|has|says so|so|it|its|they|another|the same|none|nobody|nothing|as|\$\{)\b/i;
const ARCHAIC =
  /\b(?:anew|whoever|whatever|whom|beside|wholly|nowhere|lest|midst|begun|mended|nobody|for good|by itself|by themselves|as it is|as they are|of its own|of their own|of ours|so many|at once|under way|is away|are away)\b/i;
const SPEECH = /\b(?:tells?|told|says?|said|hears?|heard|asks?|asked)\b/i;
const BRITISH =
  /\b\w*(?:rganisation|uthoris|ecognis|ormalis|nitialis|erialis|ummaris|atalogue|ehaviour|[Cc]olour|icence|avour(?:ed|ite)?|[Cc]entre)\w*/;
const PRIVATE_NAME =
  /(?:^|[a-z])(?:Desk|World|Visit|Asked|Said|Made|Told|Heard|Shown|Standing|Doors?|Books?)(?=[A-Z]|$)|^(?:promise|anew|heed|asked|said|told|made|wanted|\w+sAt)$/;

export const RULES: readonly Rule[] = [
  {
    name: "name the thing: no clause stands in for a noun",
    kinds: PROSE,
    isBroken: (text) => HEADLESS.test(text),
  },
  {
    name: "start a doc comment with a verb or a noun phrase",
    kinds: ["doc comment"],
    isBroken: (text) => BAD_START.test(text.replace(/^@\w+\s*/, "")),
  },
  {
    name: "continue the describe block with a present-tense verb",
    kinds: ["test name"],
    isBroken: (text) => FRAGMENT.test(text),
  },
  { name: "use modern words", kinds: PROSE, isBroken: (text) => ARCHAIC.test(proseOf(text)) },
  {
    name: "software does not speak or hear",
    kinds: PROSE,
    isBroken: (text) => SPEECH.test(proseOf(text)),
  },
  {
    name: "spell the American way",
    kinds: [...PROSE, "test name", "identifier"],
    isBroken: (text) => BRITISH.test(proseOf(text)),
  },
  {
    name: "use the field's term in a name",
    kinds: ["identifier"],
    isBroken: (text) => PRIVATE_NAME.test(text),
  },
  {
    name: "write sentences of at most 35 words",
    kinds: ["sentence"],
    isBroken: (text) => wordsOf(proseOf(text)).length > 35,
  },
];

/** Returns the share and the list of texts that break a rule. */
export function findFaults(rule: Rule, texts: readonly Text[]): Finding {
  const all = texts.filter(({ kind }) => rule.kinds.includes(kind));
  const broken = all.filter(({ text }) => rule.isBroken(text));
  const percent = all.length === 0 ? 0 : (100 * broken.length) / all.length;
  return { percent, faults: broken.map(({ place, text }) => `${place}: ${text}`) };
}

/** Returns every text of a Markdown or TypeScript file. */
export function textsOf(path: string, source: string): Text[] {
  if (path.endsWith(".md")) return markdownTexts(path, source);
  if (path.startsWith("test/")) return testNames(path, source);
  return [...commentTexts(path, source), ...identifiers(path, source)];
}

function markdownTexts(path: string, source: string): Text[] {
  const plain = source
    .replace(/<!--[\s\S]*?-->/g, blankLines)
    .replace(/^```[\s\S]*?^```/gm, blankLines);
  const found: Text[] = [];
  let paragraph: string[] = [];
  let start = 1;
  const flush = (): void => {
    for (const text of sentencesOf(paragraph.join(" "))) {
      found.push({ kind: "sentence", place: `${path}:${start}`, text });
    }
    paragraph = [];
  };
  for (const [index, line] of plain.split("\n").entries()) {
    const isTable = /^\s*\|/.test(line);
    const isBreak = isTable || line.trim() === "" || /^#|^\s*(?:[-*]|\d+\.)\s/.test(line);
    if (isBreak) flush();
    if (isTable && !/^[\s|:-]+$/.test(line)) {
      for (const cell of line.split("|").flatMap(sentencesOf)) {
        found.push({ kind: "cell", place: `${path}:${index + 1}`, text: cell });
      }
    }
    if (isTable || line.trim() === "" || line.startsWith("#")) continue;
    if (paragraph.length === 0) start = index + 1;
    paragraph.push(line.replace(/^\s*(?:[-*]|\d+\.)\s/, "").trim());
  }
  flush();
  return found;
}

function commentTexts(path: string, source: string): Text[] {
  const docs = [...source.matchAll(/\/\*\*([\s\S]*?)\*\//g)].map(({ 1: text = "", index }) => ({
    kind: "doc comment" as const,
    place: placeOf(path, source, index),
    text: text.replace(/\s*\n\s*\*?\s*/g, " ").trim(),
  }));
  const notes = [...source.matchAll(/(?:^\s*|[;,{(]\s+)\/\/ ((?!ox|eslint|@ts)[^\n]*)$/gm)].map(
    ({ 1: text = "", index }) => ({
      kind: "comment" as const,
      place: placeOf(path, source, index),
      text,
    }),
  );
  return [...docs, ...notes].filter(({ text }) => wordsOf(text).length >= 3);
}

function identifiers(path: string, source: string): Text[] {
  const pattern = /^export (?:async )?(?:type|interface|class|function\*?|const) (\w+)/gm;
  return [...source.matchAll(pattern)].map(({ 1: text = "", index }) => ({
    kind: "identifier",
    place: placeOf(path, source, index),
    text,
  }));
}

function testNames(path: string, source: string): Text[] {
  const pattern =
    /\b(?:describe|it|test)(?:\.\w+(?:\([^\n]*?\))?)*\(\s*(["'`])((?:\\.|(?!\1)[\s\S])*)\1/g;
  return [...source.matchAll(pattern)]
    .map(({ 2: text = "", index }) => ({
      kind: "test name" as const,
      place: placeOf(path, source, index),
      text,
    }))
    .filter(({ text }) => wordsOf(text).length >= 2);
}

/** Returns the sentences of a paragraph that have at least three words. */
export function sentencesOf(paragraph: string): string[] {
  return paragraph
    .split(/(?<=[.!?])(?:\*\*|["')])?\s+(?=[A-Z`*"'([0-9])/)
    .map((text) => text.trim())
    .filter((text) => wordsOf(proseOf(text)).length >= 3);
}

export function wordsOf(text: string): readonly string[] {
  return text.match(/[A-Za-z0-9][\w'’/.-]*/g) ?? [];
}

/** Returns a text without code spans, with links replaced by their labels. */
export function proseOf(text: string): string {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/`[^`]*`/g, " ");
}

function placeOf(path: string, source: string, index: number): string {
  return `${path}:${source.slice(0, index).split("\n").length}`;
}

function blankLines(text: string): string {
  return text.replace(/[^\n]/g, "");
}
