import { ORIGIN, YOUR_KEY } from "../../console/lib/clients.ts";
import type { ClientBlocks } from "../../console/lib/clients.ts";

/**
 * What the documents read from the shell of their start page, and what stands for it in a block that works in an
 * empty one. The longer words come first.
 */
const PLACED: readonly (readonly [written: string, placed: string])[] = [
  ["http://127.0.0.1:8787", ORIGIN],
  ["${URL%/v1}", ORIGIN],
  ["$URL", `${ORIGIN}/v1`],
  ["$JSON", "Content-Type: application/json"],
  ["process.env.URL", `"${ORIGIN}/v1"`],
  ["process.env.KEY", `"${YOUR_KEY}"`],
  ['os.environ["URL"].removesuffix("/v1")', `"${ORIGIN}"`],
  ['os.environ["URL"]', `"${ORIGIN}/v1"`],
  ['os.environ["KEY"]', `"${YOUR_KEY}"`],
];

/**
 * Every section of `docs/clients.md` that has a block, for the console's page Connect: each block says the address
 * and the key itself, so that it works in a fresh shell, and no SDK falls back to its maker's address. What a block
 * prints is left out, and Markdown within a line is taken off: what is shown is text.
 */
export function clientsIn(markdown: string): readonly ClientBlocks[] {
  const [, ...sections] = markdown.split(/^## /m);
  return sections.flatMap((section) => {
    const [name = "", ...lines] = section.split("\n");
    const parts = partsOf(lines.join("\n"));
    return parts.some(({ kind }) => kind === "code") ? [{ name: name.trim(), parts }] : [];
  });
}

function partsOf(text: string): ClientBlocks["parts"] {
  let before = "";
  // Every other part is within fences; its first line names its language.
  return text.split(/^```/m).flatMap((part, index, all) => {
    if (index % 2 === 0) return paragraphsOf(part);
    const [info = "", ...code] = part.split("\n");
    const language = info.split(" ", 1)[0] ?? "";
    const isAnswer = before === "sh" && /^(?:text|json)$/.test(info) && all[index - 1]?.trim() === "";
    before = language;
    return isAnswer ? [] : [{ kind: "code" as const, text: placed(language, code.join("\n").trimEnd()) }];
  });
}

function placed(language: string, code: string): string {
  const text = PLACED.reduce((known, [written, own]) => known.replaceAll(written, own), code);
  if (language === "sh") return `export KEY=${YOUR_KEY}\n${text}`;
  return /\bos\./.test(text) ? text : text.replace(/^import os\n/m, "");
}

function paragraphsOf(text: string): ClientBlocks["parts"] {
  return text
    .split(/\n{2,}|\n(?=- )/)
    .map((paragraph) =>
      paragraph
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replaceAll(/[`*]/g, "")
        .replace(/^- /, "")
        .replaceAll("\n", " ")
        .trim(),
    )
    .filter((paragraph) => paragraph !== "" && !paragraph.startsWith("|"))
    .map((paragraph) => ({ kind: "text", text: paragraph }));
}
