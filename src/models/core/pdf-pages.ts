/** A larger one is not opened for its pages: most are scans, and it would be held once more. */
const CHARACTERS_MAX = 6_000_000;

/**
 * At most so many pages a PDF (base64) has, where the file says it soundly; else null. It does where every reader
 * finds the same objects, in plain sight and each once: by one table in the classic form (ISO 32000-1, 7.5.4) whose
 * entries are right, none in object streams, no list of `/Kids` written with escapes or apart from its node, and no
 * object named twice in them. Then there are no more pages than names in those lists. Whatever else looks like such
 * a list only raises the count.
 */
export function pagesIn(base64: string): number | null {
  if (base64.length > CHARACTERS_MAX) return null;
  const file = decoded(base64);
  if (file?.startsWith("%PDF-") !== true || !isPlain(file)) return null;
  const objects = objectsOf(file);
  const kids = kidsOf(file);
  if (objects === null || kids === null || kids.length === 0) return null;
  const distinct = new Set(kids);
  const isTree = distinct.size === kids.length && kids.every((kid) => objects.has(kid));
  return isTree ? kids.length : null;
}

/** The numbers of the objects that all lists of `/Kids` name; null where one is anything else than such a list. */
function kidsOf(file: string): readonly number[] | null {
  const kids: number[] = [];
  for (const { index } of file.matchAll(/\/Kids/g)) {
    const list = KIDS.exec(file.slice(index, index + KIDS_MAX));
    if (list === null) return null;
    const references = (list[1] ?? "").matchAll(/(\d+)\s+\d+\s+R/g);
    kids.push(...Array.from(references, ([, number]) => Number(number)));
  }
  return kids;
}

/** `/Kids` with its list in place, of references alone. */
const KIDS = /^\/Kids\s*\[\s*((?:\d{1,10}\s+\d{1,5}\s+R\s*)*)\]/;
const KIDS_MAX = 65_536;

/** Whether all objects stand in the file as such, under one table. */
function isPlain(file: string): boolean {
  if (/ObjStm|XRef|\/Prev/.test(file)) return false;
  for (const [name] of file.matchAll(/\/[\w#]*#[\dA-Fa-f]{2}[\w#]*/g)) {
    if (/Kids|ObjStm|XRef|Prev/.test(unescaped(name))) return false;
  }
  return ["startxref", "trailer"].every((word) => file.split(word, 3).length === 2);
}

/** The numbers of the objects that the table finds where it says; null where any is not there. */
function objectsOf(file: string): ReadonlySet<number> | null {
  const [, start] = /startxref\s{1,4}(\d{1,10})/.exec(file) ?? [];
  const at = Number(start);
  const end = file.indexOf("trailer", at);
  if (start === undefined || end === -1 || !file.startsWith("xref", at)) return null;
  return foundBy(file, file.slice(at + "xref".length, end).split(/[\r\n]+/));
}

/** The same by the lines of the table. */
function foundBy(file: string, lines: readonly string[]): ReadonlySet<number> | null {
  const objects = new Set<number>();
  let next = 0;
  for (const line of lines) {
    const [, first] = /^\s*(\d{1,10})\s+\d{1,10}\s*$/.exec(line) ?? [];
    const [, offset, kind] = /^(\d{10}) \d{5} ([nf])\s*$/.exec(line) ?? [];
    if (first !== undefined) next = Number(first);
    else if (kind === "f") next += 1;
    else if (kind === "n" && isObjectAt(file, Number(offset), next)) objects.add(next++);
    else if (line.trim() !== "") return null;
  }
  return objects;
}

function isObjectAt(file: string, offset: number, number: number): boolean {
  const [, said] = /^(\d{1,10})\s+\d{1,5}\s+obj/.exec(file.slice(offset, offset + 40)) ?? [];
  return said !== undefined && Number(said) === number;
}

function unescaped(name: string): string {
  return name.replaceAll(/#([\dA-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Bytes as characters; null where it is no base64. */
function decoded(base64: string): string | null {
  try {
    return atob(base64);
  } catch {
    return null;
  }
}
