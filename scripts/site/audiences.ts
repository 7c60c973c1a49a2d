/** A page. `name` is its path below docs without the file extension. */
export type Page = { readonly name: string; readonly markdown: string };

/** The readers of a page: customers, operators or contributors. Part of the page's URL. */
export type Audience = "use" | "run" | "develop";
export const AUDIENCES: readonly (readonly [name: Audience, title: string, first: string])[] = [
  ["use", "Use", "quickstart"],
  ["run", "Run", "start"],
  ["develop", "Develop", "internals/README"],
];

export const CHANGELOG = "changelog";

type Group = readonly [title: string, names: readonly string[]];
/** Pages of each audience. `internals` and unlisted pages are for `develop`. */
const TREES: Readonly<Record<Exclude<Audience, "develop">, readonly Group[]>> = {
  use: [
    ["Start", ["quickstart", "clients", "concepts"]],
    [
      "Build",
      ["streaming", "tools", "images", "structured-output", "prompt-caching", "media", "errors", "idempotency", "limits"],
    ],
    ["Bill", ["keys", "spending", "end-users", "usage", "credits", "billing", "webhooks"]],
    ["Organization", ["people", "regions", "console"]],
    ["Reference", ["models-and-prices", CHANGELOG, "status"]],
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

/** Returns a page's audience, or null for the first page, which is for everyone. */
export function audienceOf(name: string): Audience | null {
  if (name === "README") return null;
  if (name.startsWith("api/operators")) return "run";
  if (isApi(name)) return "use";
  return PLACES.get(name) ?? "develop";
}

/** Returns a page's file on the site without extension, such as `docs/use/errors`. */
export function fileOf(name: string): string {
  const audience = audienceOf(name);
  const own = name.replace(/^internals\//, "").replace(/README$/, "index");
  return audience === null ? `docs/${own}` : `docs/${audience}/${own}`;
}

export function urlOf(name: string): string {
  return `/${fileOf(name).replace(/(^|\/)index$/, "$1")}`;
}

const isApi = (name: string): boolean => name === "api" || name.startsWith("api/");

/** Returns the groups of an audience's tree. Pages of the API reference come last. */
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

/** Returns redirects from earlier URLs. */
export function redirectsOf(pages: readonly Page[]): string {
  const moved = pages.filter(({ name }) => audienceOf(name) !== null && !name.startsWith("api/"));
  const lines = moved.flatMap(({ name }) => {
    const old = `/docs/${name.replace(/(^|\/)README$/, "$1")}`;
    const oldFile = `/docs/${name.replace(/README$/, "index")}`;
    return [`${old} ${urlOf(name)} 301`, `${oldFile}.md /${fileOf(name)}.md 301`];
  });
  const api = Object.entries(API_MOVED).flatMap(([page, old]) =>
    old.map((name) => `/docs/use/api/${name} /docs/use/${page} 301`),
  );
  return `${[...lines, ...api].join("\n")}\n`;
}

/** Earlier pages of the API reference. */
const API_MOVED: Readonly<Record<string, readonly string[]>> = {
  api: ["inference-1", "inference-2"],
  "api/keys": ["keys-1", "keys-2"],
  "api/credits": ["money-1", "money-2", "money-3"],
  "api/webhooks": ["events-1", "events-2", "events-3"],
  "api/people": ["people-1", "people-2", "people-3", "people-4", "people-5", "people-6"],
};
