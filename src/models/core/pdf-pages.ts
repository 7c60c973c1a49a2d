import { decodeBase64 } from "./data-url.ts";

/** Maximum base64 length of a PDF to parse. Most larger PDFs are scans. */
const BASE64_LENGTH_MAX = 6_000_000;

/**
 * Returns an upper bound of a PDF's pages, or null if the file is ambiguous. The file must have one
 * classic cross-reference table (ISO 32000-1, 7.5.4) with correct entries, no object streams, and
 * plain `/Kids` lists without duplicates.
 */
export function computeMaxPdfPages(base64: string): number | null {
  if (base64.length > BASE64_LENGTH_MAX) return null;
  const file = decodeBase64(base64);
  if (file?.startsWith("%PDF-") !== true || !hasPlainObjects(file)) return null;
  const objects = pdfObjectIds(file);
  const pageReferences = readPageReferences(file);
  if (objects === null || pageReferences === null || pageReferences.length === 0) return null;
  const distinctReferences = new Set(pageReferences);
  const isTree =
    distinctReferences.size === pageReferences.length &&
    pageReferences.every((kid) => objects.has(kid));
  return isTree ? pageReferences.length : null;
}

function readPageReferences(file: string): readonly number[] | null {
  const pageReferences: number[] = [];
  for (const { index } of file.matchAll(/\/Kids/g)) {
    const list = KIDS_LIST.exec(file.slice(index, index + KIDS_CHARACTERS_MAX));
    if (list === null) return null;
    const references = (list[1] ?? "").matchAll(/(\d+)\s+\d+\s+R/g);
    pageReferences.push(...Array.from(references, ([, number]) => Number(number)));
  }
  return pageReferences;
}

const KIDS_LIST = /^\/Kids\s*\[\s*((?:\d{1,10}\s+\d{1,5}\s+R\s*)*)\]/;
const KIDS_CHARACTERS_MAX = 65_536;

function hasPlainObjects(file: string): boolean {
  if (/ObjStm|XRef|\/Prev/.test(file)) return false;
  for (const [name] of file.matchAll(/\/[\w#]*#[\dA-Fa-f]{2}[\w#]*/g)) {
    if (/Kids|ObjStm|XRef|Prev/.test(unescapeName(name))) return false;
  }
  return ["startxref", "trailer"].every((word) => file.split(word, 3).length === 2);
}

function pdfObjectIds(file: string): ReadonlySet<number> | null {
  const [, start] = /startxref\s{1,4}(\d{1,10})/.exec(file) ?? [];
  const at = Number(start);
  const end = file.indexOf("trailer", at);
  if (start === undefined || end === -1 || !file.startsWith("xref", at)) return null;
  return parseObjectTable(file, file.slice(at + "xref".length, end).split(/[\r\n]+/));
}

function parseObjectTable(file: string, lines: readonly string[]): ReadonlySet<number> | null {
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
  const [, reported] = /^(\d{1,10})\s+\d{1,5}\s+obj/.exec(file.slice(offset, offset + 40)) ?? [];
  return reported !== undefined && Number(reported) === number;
}

function unescapeName(name: string): string {
  return name.replaceAll(/#([\dA-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
