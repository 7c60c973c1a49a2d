import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { slugOf } from "../../scripts/site/html.ts";
import { readPage, ROOT } from "./pages.ts";

const FENCED = /^```[^]*?^```$/gm;
const CODE = /`[^`\n]*`/g;
const LINK = /\]\(([^()\s]+)\)/g;
const HEADING = /^#{1,6} (.+)$/gm;
const ABSOLUTE = /^https:\/\/[^/]+\.[a-z]+(?:\/|$)/;

/**
 * Returns the anchors of a page's headings, as GitHub creates them. Repeated headings have a
 * number.
 */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of markdown.replaceAll(FENCED, "").matchAll(HEADING)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let i = 1; anchors.has(anchor); i++) anchor = `${slug}-${i}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Returns broken links of a page: to missing files, missing anchors, or invalid addresses. */
export function brokenLinks(page: string, markdown = readPage(page)): string[] {
  const text = markdown.replaceAll(FENCED, "").replaceAll(CODE, "");
  const links = [...text.matchAll(LINK)].map(([, link = ""]) => link);
  return links.filter((link) => !leadsSomewhere(page, link, markdown));
}

function leadsSomewhere(page: string, link: string, markdown: string): boolean {
  if (/^[a-z]+:/.test(link)) return ABSOLUTE.test(link); // pages of other sites aren't checked
  const [file = "", anchor] = link.split("#");
  const target = file === "" ? page : path.join(path.dirname(page), file);
  if (!existsSync(path.join(ROOT, target))) return false;
  if (anchor === undefined) return true;
  const isPage = target.endsWith(".md") && statSync(path.join(ROOT, target)).isFile();
  return isPage && anchorsOf(target === page ? markdown : readPage(target)).has(anchor);
}
