import { expect, it } from "vitest";
import { openApiText } from "../../scripts/openapi.ts";
import { apiPages } from "../../scripts/site/api.ts";
import { AUDIENCES, audienceOf, redirectsOf, treeOf, urlOf } from "../../scripts/site/audiences.ts";
import { entriesOf, readPages } from "../../scripts/site/build.ts";
import { search } from "../../scripts/site/search.ts";

const openApi = await openApiText();
const api = apiPages(openApi);
const pages = [...readPages(), ...api];
const entries = pages.flatMap((page) => entriesOf(page));

/** The page of an operation. */
function pageOf(operation: string): string {
  return api.find(({ markdown }) => markdown.includes(`\n## \`${operation}\`\n`))?.name ?? "";
}

const FIRST = 20;
/** What people type, and the page that answers it; those of `FIRST` are the first hit, the others one of three. */
const PHRASES: readonly (readonly [query: string, page: string])[] = [
  ["what if the client goes", "concepts"],
  ["webhook signature", "webhooks"],
  ["GDPR", "residency"],
  ["rotate a key", "keys"],
  ["cost when a stream's client disconnects", "concepts"],
  ["verify a webhook", "webhooks"],
  ["data in the EU", "residency"],
  ["insufficient_balance", "errors"],
  ["quickstart", "quickstart"],
  ["Claude Code", "clients"],
  ["idempotency key", "idempotency"],
  ["POST /v1/keys", pageOf("POST /v1/keys")],
  ["disconnect", "concepts"],
  ["cancel", "concepts"],
  ["abort", "concepts"],
  ["stop", "concepts"],
  ["signature", "webhooks"],
  ["verify", "webhooks"],
  ["gdpr", "residency"],
  ["residency", "residency"],
  ["429", "limits"],
  ["rate limit", "limits"],
  ["refund", "concepts"],
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
  ["streaming", "quickstart"],
  ["python", "clients"],
  ["x-cost-micro", "quickstart"],
  ["401", "errors"],
  ["402", "errors"],
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
  ["embeddings", "clients"],
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
  ["sso", "log-ins"],
  ["restore a backup", "deploy"],
  ["lost wallet", "operate"],
  ["add a provider", "providers"],
  ["environment variables", "configuration"],
  ["secrets rotate", "deploy"],
  ["health check", "operate"],
  ["log lines", "metrics"],
];

it.each(PHRASES.map(([query, page], i) => ({ query, page, within: i < FIRST ? 1 : 3 })))(
  "search: $query leads to $page, within $within",
  ({ query, page, within }) => {
    const found = search(entries, query, { audience: audienceOf(page) ?? "" });
    const hits = [...new Set(found.map(({ url }) => url.split("#")[0]))].slice(0, within);
    expect(
      hits.find((url) => url === urlOf(page)),
      found.map(({ url }) => url).join("\n"),
    ).toBe(urlOf(page));
  },
);

it("a search for nothing we know finds nothing", () => {
  expect(search(entries, "xyzzyplugh")).toEqual([]);
});

it("no two pages have one title, and each stands in the tree of its audience once", () => {
  const titles = pages.map(({ markdown }) => /^# (.+)$/m.exec(markdown)?.[1]);
  expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([]);
  const placed = AUDIENCES.flatMap(([audience]) =>
    treeOf(audience, pages).flatMap(([, names]) => names),
  );
  const all = pages.map(({ name }) => name).filter((name) => name !== "README");
  expect(placed.toSorted()).toEqual(all.toSorted());
});

it("pages for customers have no word of the repository and no variable that a block does not set", () => {
  const theirs = pages.filter(({ name }) => audienceOf(name) === "use");
  expect(theirs.length).toBeGreaterThan(10);
  for (const { name, markdown } of theirs) {
    expect(markdown, name).not.toMatch(
      /npm (?:run|start|ci)|\.dev\/|\bdemo\(\)|\| field |start\.md#settings/,
    );
    expect(markdown, name).not.toMatch(/\$URL\b|\$AUTH\b|"\$JSON"|127\.0\.0\.1:878/);
  }
});

it("every page that moved is redirected from where it was", () => {
  const lines = redirectsOf(pages).trim().split("\n");
  expect(lines).toContain("/docs/errors /docs/use/errors 301");
  expect(lines).toContain("/docs/internals/decisions/ /docs/develop/decisions/ 301");
  expect(new Set(lines.map((line) => line.split(" ")[0])).size).toBe(lines.length);
});

it("the API reference has every field of every schema", () => {
  const { paths, components } = JSON.parse(openApi) as {
    paths: object;
    components: { schemas: Readonly<Record<string, { properties?: object }>> };
  };
  const said = new Set(
    api.flatMap(({ markdown }) =>
      [...markdown.matchAll(/^([\w[\].$-]+) \| /gm)].map(([, path = ""]) => path.split(".").at(-1)),
    ),
  );
  const used = JSON.stringify(paths);
  const missing = Object.entries(components.schemas).flatMap(([name, { properties = {} }]) =>
    used.includes(`schemas/${name}"`)
      ? Object.keys(properties).filter((field) => !said.has(field) && !said.has(`${field}[]`))
      : [],
  );
  expect(missing).toEqual([]);
});
