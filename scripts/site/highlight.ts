import { createCssVariablesTheme, createHighlighterCoreSync } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import json from "shiki/langs/json.mjs";
import python from "shiki/langs/python.mjs";
import shell from "shiki/langs/shellscript.mjs";
import toml from "shiki/langs/toml.mjs";
import typescript from "shiki/langs/typescript.mjs";
import yaml from "shiki/langs/yaml.mjs";
import { escapeHtml } from "./html.ts";

/** A theme with a CSS variable for each kind of token. style.css sets the colors. */
const THEME = createCssVariablesTheme();
const highlighter = createHighlighterCoreSync({
  themes: [THEME],
  langs: [json, python, shell, toml, typescript, yaml],
  engine: createJavaScriptRegexEngine(),
});
const NAMES: Readonly<Record<string, string>> = { js: "typescript", ts: "typescript", sh: "shellscript" };
const KIND = /^var\(--shiki-token-([a-z-]+)\)$/;

/** Returns a code block as HTML. Each token is a `span` with the class `t-<kind>`. */
export function highlighted(code: string, language: string): string {
  const lang = NAMES[language] ?? language;
  if (!highlighter.getLoadedLanguages().includes(lang)) return escapeHtml(code);
  const { tokens } = highlighter.codeToTokens(code, { lang, theme: "css-variables" });
  return tokens
    .map((line) => line.map(({ content, color }) => tokenHtml(content, color)).join(""))
    .join("\n");
}

function tokenHtml(content: string, color = ""): string {
  const [, kind] = KIND.exec(color) ?? [];
  const text = escapeHtml(content);
  return kind === undefined ? text : `<span class="t-${kind}">${text}</span>`;
}
