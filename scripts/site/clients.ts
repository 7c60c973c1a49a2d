import { ORIGIN, YOUR_KEY } from "../../console/lib/clients.ts";
import type { ClientBlocks } from "../../console/lib/clients.ts";
import { neededBy, placed } from "./placed.ts";

/** What a program is called that a block writes before it runs it, and what runs it. */
const PROGRAMS: Readonly<Record<string, readonly [file: string, run: string]>> = {
  js: ["turnpike.mjs", "node"],
  python: ["turnpike.py", "python3"],
};

/**
 * Every section of `docs/clients.md` that has a block, for the console's page Connect. Each block does all of it in
 * an empty shell: it sets the key, installs the client, writes its file, and ends with the line that asks. What a
 * block prints is left out, and Markdown within a line is taken off: what is shown is text.
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
  /** Commands that write the client's file, for the block that starts it. */
  let writing = "";
  const written = new Set<string>();
  // Every other part is within fences; its first line names its language.
  const parts = text.split(/^```/m).flatMap((part, index, all): ClientBlocks["parts"] => {
    if (index % 2 === 0) return paragraphsOf(part);
    const [info = "", ...lines] = part.split("\n");
    const [language = ""] = info.split(" ", 1);
    const isAnswer = before === "sh" && /^(?:text|json)$/.test(info) && all[index - 1]?.trim() === "";
    before = language;
    if (isAnswer) return [];
    const code = placed(lines.join("\n").trimEnd(), { origin: ORIGIN, key: YOUR_KEY });
    const [, file] = / file: (\S+)/.exec(info) ?? [];
    if (file !== undefined) {
      written.add(file);
      writing = fileWritten(file, code);
      return [];
    }
    const [program, run] = PROGRAMS[language] ?? [];
    if (program !== undefined) written.add(program);
    const commands = [
      ...(language === "sh" || writing !== "" ? [`export KEY=${YOUR_KEY}`] : []),
      neededBy(info),
      writing,
      ...(program === undefined ? [code] : [fileWritten(program, code), `${run} ${program}`]),
    ];
    writing = "";
    return [{ kind: "code", text: commands.filter((line) => line !== "").join("\n") }];
  });
  if (written.size === 0) return parts;
  return [...parts, { kind: "text", text: `To undo it: rm ${[...written].join(" ")}` }];
}

function fileWritten(file: string, text: string): string {
  const folder = file.includes("/") ? `mkdir -p ${file.slice(0, file.lastIndexOf("/"))}\n` : "";
  return `${folder}cat > ${file} <<'END'\n${text}\nEND`;
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
