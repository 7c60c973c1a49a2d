/** A client of the document about clients: its words and its blocks, in their order. */
export type ClientBlocks = {
  readonly name: string;
  readonly parts: readonly { readonly kind: "text" | "code"; readonly text: string }[];
};

/** The address that the documents are written for. */
const WRITTEN_FOR = "http://127.0.0.1:8787";

/**
 * Every section of `docs/clients.md` that has a block, with the address that is written there, or `$URL`,
 * replaced by `origin`. Markdown within a line is taken off: what is shown is text.
 */
export function clientsIn(markdown: string, origin: string): readonly ClientBlocks[] {
  const [, ...sections] = markdown.split(/^## /m);
  return sections.flatMap((section) => {
    const [name = "", ...lines] = section.split("\n");
    const parts = partsOf(lines.join("\n"), origin);
    return parts.some(({ kind }) => kind === "code") ? [{ name: name.trim(), parts }] : [];
  });
}

function partsOf(text: string, origin: string): ClientBlocks["parts"] {
  // Every other part is within fences; its first line names its language.
  return text.split(/^```/m).flatMap((part, index) => {
    if (index % 2 === 0) return paragraphsOf(part);
    const [language = "", ...code] = part.split("\n");
    if (language.startsWith("text")) return []; // what the block before prints
    const placed = code.join("\n").trimEnd().replaceAll(WRITTEN_FOR, origin);
    return [{ kind: "code" as const, text: placed.replaceAll("$URL", `${origin}/v1`) }];
  });
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
