/** A page: its path below docs without the ending, and its Markdown. */
export type Page = { readonly name: string; readonly markdown: string };

/** The reader of a page: with a key, running a region, or changing the code. Part of the page's address. */
export type Audience = "use" | "run" | "develop";
export const AUDIENCES: readonly (readonly [name: Audience, title: string, first: string])[] = [
  ["use", "Use", "quickstart"],
  ["run", "Run", "start"],
  ["develop", "Develop", "internals/README"],
];

type Group = readonly [title: string, names: readonly string[]];
/** The pages of each audience; `internals` and unlisted pages are for `develop`. */
const TREES: Readonly<Record<Exclude<Audience, "develop">, readonly Group[]>> = {
  use: [
    ["Begin", ["quickstart", "clients", "console", "concepts"]],
    ["Work with it", ["keys", "end-users", "usage", "errors", "limits", "idempotency"]],
    ["", ["credits", "webhooks", "models-and-prices", "regions", "people"]],
  ],
  run: [
    ["Begin", ["start", "sandbox", "deploy", "one-region", "configuration"]],
    ["Operate", ["operate", "alerts", "runbooks", "metrics"]],
    ["", ["log-ins", "providers", "prices", "residency", "security", "capacity", "figures"]],
  ],
};

const PLACES: ReadonlyMap<string, Audience> = new Map(
  Object.entries(TREES).flatMap(([audience, groups]) =>
    groups.flatMap(([, names]) => names.map((name) => [name, audience as Audience] as const)),
  ),
);

/** Returns a page's audience; null: the first page, for everyone. */
export function audienceOf(name: string): Audience | null {
  if (name === "README") return null;
  if (name.startsWith("api/operators")) return "run";
  if (isApi(name)) return "use";
  return PLACES.get(name) ?? "develop";
}

/** A page's file on the site without its ending: `docs/use/errors`, `docs/develop/decisions/index`. */
export function fileOf(name: string): string {
  const audience = audienceOf(name);
  const own = name.replace(/^internals\//, "").replace(/README$/, "index");
  return audience === null ? `docs/${own}` : `docs/${audience}/${own}`;
}

/** A page's address. */
export function urlOf(name: string): string {
  return `/${fileOf(name).replace(/(^|\/)index$/, "$1")}`;
}

const isApi = (name: string): boolean => name === "api" || name.startsWith("api/");

/** The groups of an audience's tree; pages of the API reference are the last. */
export function treeOf(audience: Audience, pages: readonly Page[]): readonly Group[] {
  const own = pages.map(({ name }) => name).filter((name) => audienceOf(name) === audience);
  const groups = audience === "develop" ? [] : TREES[audience];
  const placed = new Set(groups.flatMap(([, names]) => names));
  const rest = own.filter((name) => !placed.has(name) && !isApi(name));
  const decisions = rest.filter((name) => name.includes("decisions/"));
  return [
    ...groups,
    ["Change it", rest.filter((name) => !decisions.includes(name))] as const,
    ["Decisions", decisions] as const,
    ["API reference", own.filter(isApi)] as const,
  ].filter(([, names]) => names.length > 0);
}

/** Returns redirects from addresses before audiences existed. */
export function redirectsOf(pages: readonly Page[]): string {
  const moved = pages.filter(({ name }) => audienceOf(name) !== null && !name.startsWith("api/"));
  const lines = moved.flatMap(({ name }) => {
    const old = `/docs/${name.replace(/(^|\/)README$/, "$1")}`;
    const oldFile = `/docs/${name.replace(/README$/, "index")}`;
    return [`${old} ${urlOf(name)} 301`, `${oldFile}.md /${fileOf(name)}.md 301`];
  });
  return `${lines.join("\n")}\n`;
}
