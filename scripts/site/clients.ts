import { ORIGIN_PLACEHOLDER, KEY_PLACEHOLDER } from "../../src/console/browser/lib/clients.ts";
import type { ClientSetupBlocks } from "../../src/console/browser/lib/clients.ts";
import { installCommandOf, fillPlaceholders } from "./placed.ts";

/** The file name and the runtime of a block's program. */
const PROGRAMS: Readonly<Record<string, readonly [file: string, run: string]>> = {
  js: ["turnpike.mjs", "node"],
  python: ["turnpike.py", "python3"],
};

/**
 * Returns every section of `docs/clients.md` with a block, for the console's page Connect. Each
 * block works in an empty shell: it sets the key, installs the client, writes its file and sends a
 * request. Output, inline Markdown and comments are removed.
 */
export function clientsIn(markdown: string): readonly ClientSetupBlocks[] {
  const [, ...sections] = markdown.split(/^## /m);
  return sections.flatMap((section) => {
    const [name = "", ...lines] = section.split("\n");
    const parts = partsOf(lines.join("\n"));
    return parts.some(({ kind }) => kind === "code") ? [{ name: name.trim(), parts }] : [];
  });
}

function partsOf(text: string): ClientSetupBlocks["parts"] {
  let before = "";
  /** Commands that write the client's file, for the block that starts the client. */
  let writing = "";
  const written = new Set<string>();
  // Every second part is within fences and starts with its language.
  const parts = text.split(/^```/m).flatMap((part, index, all): ClientSetupBlocks["parts"] => {
    if (index % 2 === 0) return paragraphsOf(part);
    const [info = "", ...lines] = part.split("\n");
    const [language = ""] = info.split(" ", 1);
    const isAnswer = isPrinted(info, all[index - 1]) && before === "sh";
    before = language;
    if (isAnswer) return [];
    const code = fillPlaceholders(lines.join("\n").trimEnd(), { origin: ORIGIN_PLACEHOLDER, key: KEY_PLACEHOLDER });
    const [, file = ""] = / file: (\S+)/.exec(info) ?? [];
    written.add(PROGRAMS[language]?.[0] ?? file);
    if (file !== "") {
      writing = fileCommand(file, code);
      return [];
    }
    const commands = commandsOf({ language, needed: installCommandOf(info), writing, code });
    writing = "";
    return [{ kind: "code", text: commands }];
  });
  const files = [...written].filter((file) => file !== "").join(" ");
  return files === "" ? parts : [...parts, { kind: "text", text: `To undo it: rm ${files}` }];
}

/** Reports whether a block is the output of the block directly above. */
function isPrinted(info: string, between = ""): boolean {
  return /^(?:text|json)$/.test(info) && between.trim() === "";
}

/** Returns the commands from setting the key to the request, for an empty shell. */
function commandsOf(block: Readonly<Record<"language" | "needed" | "writing" | "code", string>>) {
  const { language, needed, writing, code } = block;
  const [program, run] = PROGRAMS[language] ?? [];
  return [
    ...(language === "sh" ? [`export KEY=${KEY_PLACEHOLDER}`] : []),
    needed,
    writing,
    ...(program === undefined ? [code] : [fileCommand(program, code), `${run} ${program}`]),
  ]
    .filter((line) => line !== "")
    .join("\n");
}

function fileCommand(file: string, text: string): string {
  const folder = file.includes("/") ? `mkdir -p ${file.slice(0, file.lastIndexOf("/"))}\n` : "";
  return `${folder}cat > ${file} <<'END'\n${text}\nEND`;
}

function paragraphsOf(text: string): ClientSetupBlocks["parts"] {
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
    .filter((paragraph) => paragraph !== "" && !/^(?:\||<!--)/.test(paragraph))
    .map((paragraph) => ({ kind: "text", text: paragraph }));
}
