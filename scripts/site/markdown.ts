import { Marked } from "marked";
import type { Token, Tokens } from "marked";
import { highlighted } from "./highlight.ts";
import { escapeHtml, slugOf } from "./html.ts";

export type Heading = { readonly depth: number; readonly title: string; readonly anchor: string };
type Rendered = { readonly html: string; readonly headings: readonly Heading[] };

/**
 * Converts a page's Markdown to HTML and escapes raw HTML. `hrefOf` returns a link's target, or
 * null for no link.
 */
export function renderMarkdown(
  markdown: string,
  hrefOf: (link: string) => string | null,
): Rendered {
  const headings: Heading[] = [];
  const marked = new Marked({
    renderer: {
      heading({ depth, text, tokens }: Tokens.Heading): string {
        const anchor = slugOf(text);
        headings.push({ depth, title: text.replaceAll("`", ""), anchor });
        const title = this.parser.parseInline(tokens);
        return `<h${depth} id="${escapeHtml(anchor)}"><a href="#${escapeHtml(anchor)}">${title}</a></h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link): string {
        const to = hrefOf(href);
        const text = this.parser.parseInline(tokens);
        return to === null ? text : `<a href="${escapeHtml(to)}">${text}</a>`;
      },
      image({ href, text }: Tokens.Image): string {
        return `<img src="${escapeHtml(hrefOf(href) ?? "")}" alt="${escapeHtml(text)}">`;
      },
      code({ text, lang }: Tokens.Code): string {
        const language = (lang ?? "").split(" ")[0] ?? "";
        if (/^(?:open-)?fields$/.test(language)) {
          const title = (lang ?? "").slice(language.length + 1);
          return fieldsHtml(title, text, language === "open-fields");
        }
        return `<pre data-language="${escapeHtml(language)}" tabindex="0"><code>${highlighted(text, language)}</code></pre>\n`;
      },
      html({ text }: Tokens.HTML | Tokens.Tag): string {
        return text.startsWith("<!--") ? "" : escapeHtml(text);
      },
    },
  });
  const html = partsOf(marked.lexer(markdown))
    .map((part) =>
      part.kind === "tabs"
        ? tabsHtml(part, (tokens) => marked.parser(tokens))
        : marked.parser(part.tokens),
    )
    .join("");
  const scrolling = html
    .replaceAll("<th></th>", "<td></td>") // empty cells aren't headers
    .replaceAll("<table>", '<div class="table" tabindex="0"><table>');
  return { html: scrolling.replaceAll("</table>", "</table></div>"), headings };
}

type Tab = { readonly name: string; readonly tokens: Token[] };
type Tabs = { readonly kind: "tabs"; readonly number: number; readonly tabs: Tab[] };
type Part = Tabs | { readonly kind: "tokens"; readonly tokens: Token[] };

/**
 * Splits a page. Adjacent marked blocks (`sh tab: curl`) form one example in several languages,
 * each with its output.
 */
function partsOf(tokens: readonly Token[]): Part[] {
  const parts: Part[] = [];
  for (const token of tokens) {
    const last = parts.at(-1);
    const { name, isAnswer } = roleOf(token);
    if (name !== undefined && last?.kind === "tabs") last.tabs.push({ name, tokens: [token] });
    else if (name !== undefined) parts.push(tabsOf(parts.length, { name, tokens: [token] }));
    else if (last?.kind === "tabs" && isAnswer) last.tabs.at(-1)?.tokens.push(token);
    else if (last?.kind === "tokens") last.tokens.push(token);
    else parts.push({ kind: "tokens", tokens: [token] });
  }
  return parts;
}

/**
 * Returns the language of a tab's block, and whether the token can be the output of the tab before
 * it.
 */
function roleOf(token: Token): { readonly name: string | undefined; readonly isAnswer: boolean } {
  const lang = token.type === "code" ? String(token["lang"]) : "";
  const [, name] = / tab: (\w+)/.exec(lang) ?? [];
  return { name, isAnswer: token.type === "space" || lang === "text" || lang === "json" };
}

function tabsOf(number: number, first: Tab): Tabs {
  return { kind: "tabs", number, tabs: [first] };
}

/** Returns radio buttons. The style sheet shows the chosen panel without a script. */
function tabsHtml({ number, tabs }: Tabs, render: (tokens: Token[]) => string): string {
  const name = `language-${number}`;
  const buttons = tabs.map((tab, i) => {
    const checked = i === 0 ? " checked" : "";
    return `<input type="radio" name="${name}" id="${name}-${i}" value="${escapeHtml(tab.name)}"${checked}><label for="${name}-${i}">${escapeHtml(tab.name)}</label>`;
  });
  const panels = tabs.map(({ tokens }) => `<div class="tab">${render(tokens)}</div>`);
  return `<fieldset class="tabs"><legend>Language</legend>${buttons.join("")}${panels.join("")}</fieldset>\n`;
}

/**
 * Returns a table of fields, folded unless it is open. Each line is a row with `|` between cells.
 */
function fieldsHtml(title: string, text: string, isOpen: boolean): string {
  const rows = text.split("\n").map((line) => {
    const [name = "", type = "", words = ""] = line.split(/ (?<!\\)\| /);
    const cells = `<td>${escapeHtml(type)}</td><td>${escapeHtml(words.replaceAll("\\|", "|"))}</td>`;
    return `<tr><td><code>${escapeHtml(name)}</code></td>${cells}</tr>`;
  });
  const head = "<tr><th>Field</th><th>Type</th><th>Description</th></tr>";
  const table = `<table>${head}${rows.join("")}</table>`;
  const summary = `<summary>${escapeHtml(title)}: ${rows.length}</summary>`;
  return `<details class="fields"${isOpen ? " open" : ""}>${summary}${table}</details>\n`;
}
