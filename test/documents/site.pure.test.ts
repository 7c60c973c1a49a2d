import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { openApiText } from "../../scripts/openapi.ts";
import { apiPages } from "../../scripts/site/api.ts";
import {
  AUDIENCES,
  audienceOf,
  CHANGELOG,
  redirectsOf,
  treeOf,
  urlOf,
} from "../../scripts/site/audiences.ts";
import { entriesOf, readPages } from "../../scripts/site/build.ts";
import { highlighted } from "../../scripts/site/highlight.ts";
import { renderMarkdown } from "../../scripts/site/markdown.ts";
import { search } from "../../scripts/site/search.ts";

const openApi = await openApiText();
const api = apiPages(openApi);
const pages = [...readPages(), ...api];
const entries = pages.flatMap((page) => entriesOf(page));

const TASKS = [
  "chat responses messages embeddings models keys sessions credits usage requests events webhooks",
  "end-users organization people",
].flatMap((names) => names.split(" ").map((name) => `api/${name}`));

function pageOf(operation: string): string {
  return api.find(({ markdown }) => markdown.includes(`\n## \`${operation}\`\n`))?.name ?? "";
}

/** Queries with the page that must be the first result. */
const FIRST: readonly (readonly [query: string, page: string])[] = [
  ["status page", "status"],
  ["retry", "errors"],
  ["cache", "prompt-caching"],
  ["rotate key", "keys"],
  ["402", "errors"],
  ["verify webhook", "webhooks"],
  ["data in EU", "regions"],
  ["claude code", "clients"],
  ["json schema", "structured-output"],
  ["invite teammate", "people"],
  ["function calling", "tools"],
  ["image input", "images"],
  ["create a key", pageOf("POST /v1/keys")],
  ["429", "limits"],
  ["refund", "credits"],
  ["gdpr", "people"],
  ["sso", "people"],
  ["disconnect cost", "streaming"],
  ["price per token", "models-and-prices"],
  ["deploy", "deploy"],
  ["what if the client goes", "streaming"],
  ["webhook signature", "webhooks"],
  ["rotate a key", "keys"],
  ["cost when a stream's client disconnects", "concepts"],
  ["verify a webhook", "webhooks"],
  ["insufficient_balance", "errors"],
  ["quickstart", "quickstart"],
  ["idempotency key", "idempotency"],
  ["POST /v1/keys", pageOf("POST /v1/keys")],
  ["streaming", "streaming"],
  ["changelog", "changelog"],
];
/** Queries whose page must be one of the first three results. */
const NEAR: readonly (readonly [query: string, page: string])[] = [
  ["disconnect", "concepts"],
  ["cancel", "concepts"],
  ["abort", "concepts"],
  ["stop", "concepts"],
  ["signature", "webhooks"],
  ["verify", "webhooks"],
  ["residency", "residency"],
  ["rate limit", "limits"],
  ["byok", "providers"],
  ["hmac", "webhooks"],
  ["revoke a leaked key", "keys"],
  ["budget for a key", "keys"],
  ["quota of an end user", "end-users"],
  ["base url", "quickstart"],
  ["retry-after", "limits"],
  ["replay webhooks", "webhooks"],
  ["price of a model", "models-and-prices"],
  ["invite a member", "people"],
  ["delete an account", "people"],
  ["log in with Google", "people"],
  ["prometheus alerts", "alerts"],
  ["roll back a release", "deploy"],
  ["global key", "regions"],
  ["is the request charged when the client goes away", "concepts"],
  ["delete my data", "people"],
  ["python", "clients"],
  ["x-cost-micro", "quickstart"],
  ["401", "errors"],
  ["invalid api key", "errors"],
  ["model not found", "errors"],
  ["context length exceeded", "errors"],
  ["timeout", "errors"],
  ["spend limit per customer", "end-users"],
  ["low balance alert", "usage"],
  ["add credits", "credits"],
  ["top up automatically", "credits"],
  ["invoice", "credits"],
  ["owed", "credits"],
  ["dispute", "operate"],
  ["chargeback", "operate"],
  ["who spent what", "usage"],
  ["csv", "console"],
  ["usage by model", "usage"],
  ["find a request by its id", "usage"],
  ["why did my request fail", "errors"],
  ["codex", "clients"],
  ["langchain", "clients"],
  ["embeddings", "api/embeddings"],
  ["add a customer", "operate"],
  ["give credits by hand", "operate"],
  ["suspend a customer", "operate"],
  ["forgive", "operate"],
  ["refund a payment", "operate"],
  ["price list", "prices"],
  ["markup", "prices"],
  ["margin", "prices"],
  ["set up google login", "log-ins"],
  ["operator roles", "log-ins"],
  ["company domain", "log-ins"],
  ["restore a backup", "deploy"],
  ["lost wallet", "operate"],
  ["add a provider", "providers"],
  ["environment variables", "configuration"],
  ["secrets rotate", "deploy"],
  ["health check", "operate"],
  ["log lines", "metrics"],
];

const QUERIES = [
  ...FIRST.map(([query, page]) => ({ query, page, within: 1 })),
  ...NEAR.map(([query, page]) => ({ query, page, within: 3 })),
];

it.each(QUERIES)(
  "the search of the docs site finds $page for '$query' within the first $within results",
  ({ query, page, within }) => {
    const found = search(entries, query, { audience: audienceOf(page) ?? "" });
    const hits = [...new Set(found.map(({ url }) => url.split("#")[0]))].slice(0, within);
    expect(
      hits.find((url) => url === urlOf(page)),
      found.map(({ url }) => url).join("\n"),
    ).toBe(urlOf(page));
  },
);

it("the search of the docs site finds nothing for an unknown word", () => {
  expect(search(entries, "xyzzyplugh")).toEqual([]);
});

it("every page of the docs site has a unique title, and appears in the navigation once", () => {
  const titles = pages.map(({ markdown }) => /^# (.+)$/m.exec(markdown)?.[1]);
  expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([]);
  const placed = AUDIENCES.flatMap(([audience]) =>
    treeOf(audience, pages).flatMap(([, names]) => names),
  );
  const all = pages.map(({ name }) => name).filter((name) => name !== "README");
  expect(placed.toSorted()).toEqual(all.toSorted());
});

it("docs pages for customers contain no internal terms and no unset variables", () => {
  const theirs = pages.filter(({ name }) => audienceOf(name) === "use" && name !== CHANGELOG);
  expect(theirs.length).toBeGreaterThan(10);
  for (const { name, markdown } of theirs) {
    expect(markdown, name).not.toMatch(
      /npm (?:run|start|ci)|\.dev\/|\bdemo\(\)|\| field |start\.md#settings/,
    );
    expect(markdown, name).not.toMatch(/\$URL\b|\$AUTH\b|"\$JSON"|127\.0\.0\.1:878/);
  }
});

it("every moved page of the docs site redirects to the new address", () => {
  const lines = redirectsOf(pages).trim().split("\n");
  expect(lines).toContain("/docs/errors /docs/use/errors 301");
  expect(lines).toContain("/docs/internals/decisions/ /docs/develop/decisions/ 301");
  expect(new Set(lines.map((line) => line.split(" ")[0])).size).toBe(lines.length);
});

it("the API reference shows each body's required fields, and hides the optional fields at first", () => {
  const chat = api.find(({ name }) => name === "api/chat")?.markdown ?? "";
  const { html } = renderMarkdown(chat, () => null);
  const [, required, other] = [
    ...html.matchAll(/<details class="fields"( open)?>(.*?)<\/details>/gs),
  ];
  expect(required?.slice(1)).toEqual([" open", expect.stringContaining("<code>messages</code>")]);
  expect(other?.slice(1)).toEqual([undefined, expect.stringContaining("<code>temperature</code>")]);
});

it("each page of the API reference covers one task, and starts with a list of its operations", () => {
  const own = api.filter(({ name }) => /^api\/(?!operators)/.test(name));
  expect(own.map(({ name }) => name)).toEqual(expect.arrayContaining(TASKS));
  for (const { name, markdown } of own) {
    const listed = [...markdown.matchAll(/^- \[`(.*?)`\]/gm)].map(([, one]) => one);
    const described = [...markdown.matchAll(/^## `(.*?)`$/gm)].map(([, one]) => one);
    expect([name, listed]).toEqual([name, described]);
  }
});

it("code on the docs site gets colors without scripts or inline styles, and one element per placeholder", () => {
  for (const { name, markdown } of pages) {
    const { html } = renderMarkdown(markdown, () => null);
    expect(html, name).not.toMatch(/ style=|<script/);
    for (const [, code = ""] of html.matchAll(/<pre [^>]*><code>([^]*?)<\/code>/g)) {
      const text = code.replaceAll(/<[^>]*>/g, "");
      for (const word of ["YOUR_KEY", "https://YOUR-REGION"]) {
        expect(code.split(word).length, `${name}: ${text}`).toBe(text.split(word).length);
      }
    }
  }
  expect(highlighted('{"a": true}', "json")).toContain('<span class="t-constant">true</span>');
});

it("the quickstart page shows the repository's example files unchanged", () => {
  const page = readPages().find(({ name }) => name === "quickstart")?.markdown ?? "";
  const shown = [...page.matchAll(/^```\w+ file: (\S+)\n([^]*?)^```$/gm)];
  expect(shown.map(([, file]) => file)).toEqual([
    "quickstart/quickstart.py",
    "quickstart/quickstart.ts",
  ]);
  for (const [, file = "", text] of shown) {
    expect(readFileSync(path.join(import.meta.dirname, "../../docs", file), "utf8")).toBe(text);
  }
});

it("the API reference includes every field of every schema", () => {
  const { paths, components } = JSON.parse(openApi) as {
    paths: object;
    components: { schemas: Readonly<Record<string, { properties?: object }>> };
  };
  const documented = new Set(
    api.flatMap(({ markdown }) =>
      [...markdown.matchAll(/^([\w[\].$-]+) \| /gm)].map(([, field = ""]) =>
        field.split(".").at(-1),
      ),
    ),
  );
  const used = JSON.stringify(paths);
  const missing = Object.entries(components.schemas).flatMap(([name, { properties = {} }]) =>
    used.includes(`schemas/${name}"`)
      ? Object.keys(properties).filter(
          (field) => !documented.has(field) && !documented.has(`${field}[]`),
        )
      : [],
  );
  expect(missing).toEqual([]);
});
