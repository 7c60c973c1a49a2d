import { Marked } from "marked";
import type { Tokens } from "marked";
import { slugOf } from "./slug.ts";

export type Heading = { readonly depth: number; readonly title: string; readonly anchor: string };
export type Rendered = { readonly html: string; readonly headings: readonly Heading[] };

/** A page's Markdown as HTML. Raw HTML in it is shown as text, and `hrefOf` says where a link leads; null: nowhere. */
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
        return `<h${depth} id="${escape(anchor)}"><a href="#${escape(anchor)}">${title}</a></h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link): string {
        const to = hrefOf(href);
        const text = this.parser.parseInline(tokens);
        return to === null ? text : `<a href="${escape(to)}">${text}</a>`;
      },
      image({ href, text }: Tokens.Image): string {
        return `<img src="${escape(hrefOf(href) ?? "")}" alt="${escape(text)}">`;
      },
      code({ text, lang }: Tokens.Code): string {
        const language = (lang ?? "").split(" ")[0] ?? "";
        return `<pre data-language="${escape(language)}" tabindex="0"><code>${escape(text)}</code></pre>\n`;
      },
      html({ text }: Tokens.HTML | Tokens.Tag): string {
        return text.startsWith("<!--") ? "" : escape(text);
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  const scrolling = html.replaceAll("<table>", '<div class="table" tabindex="0"><table>');
  return { html: scrolling.replaceAll("</table>", "</table></div>"), headings };
}

/** Text as it may stand in HTML, also between quotes. */
export function escape(text: string): string {
  const names: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  return text.replaceAll(/[&<>"]/g, (character) => names[character] ?? character);
}
