import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { OPERATIONS } from "../../scripts/openapi/operations.ts";
import { NUMERIC_VARIABLES, parseConfig } from "../../src/shared/config/config.ts";
import { EVENT_TYPES } from "../../src/shared/event.ts";
import { REGIONS } from "../../src/shared/regions.ts";
import { KEY_ROUTES } from "../../src/routes.ts";
import { MEMBER_ROLES } from "../../src/shared/caller.ts";
import type { KeyRoute } from "../../src/shared/http/route.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";
import { readPage, ROOT } from "./pages.ts";
import { REPEATED_LIMITS } from "./repeated-limits.ts";

/** Returns the cells of a page's table rows. */
const rowsOf = (page: string): string[][] =>
  readPage(page)
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^\|\s*-/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
const callsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:GET|POST|PATCH|DELETE) \/[^`]+)`/g)].map(([, call = ""]) => call);
const sources = readdirSync(path.join(ROOT, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.startsWith("console/browser/"))
  .map((name): [string, string] => [name, readFileSync(path.join(ROOT, "src", name), "utf8")]);

it("docs/keys.md lists the callers that may use each path", () => {
  const documented = rowsOf("docs/keys.md").flatMap(([what = "", ...cells]) =>
    callsIn(what).map((call) => `${call}: ${cells.join(", ")}`),
  );
  const declared = KEY_ROUTES.map((row) => {
    const at = row.path.replaceAll(/:(\w+)(?:\{.+?\})?/g, "{$1}");
    return `${row.method} ${at}: ${cellsOf(row).join(", ")}`;
  });
  expect(documented.toSorted()).toEqual(declared.toSorted());
});

/** Returns the cells of a path's row: for each role, then for a key with limits. */
function cellsOf({ path: at, reach, roles, others }: KeyRoute): string[] {
  const ofRoles = MEMBER_ROLES.map((role) => {
    if (others === undefined) return roles.includes(role) ? "yes" : "no";
    return others.includes(role) ? "all" : "its own";
  });
  return [...ofRoles, ofLimited(reach, others, at)];
}

/**
 * Returns the cell of a key with limits. It can't manage anything, and reads only its own objects.
 */
function ofLimited(reach: KeyRoute["reach"], others: KeyRoute["others"], at: string): string {
  if (reach === "managed") return "no";
  if (others === undefined) return "yes";
  return at.endsWith("/rotate") ? "itself" : "its own";
}

it("docs/idempotency.md lists the paths that accept an Idempotency-Key", () => {
  const takes = OPERATIONS.filter(({ errors }) => errors.includes("idempotency_mismatch"));
  const documented = rowsOf("docs/idempotency.md").flatMap(([what = ""]) => callsIn(what));
  expect(documented.toSorted()).toEqual(takes.map(({ name }) => name).toSorted());
});

it("docs/configuration.md lists every variable and secret, with default and range", () => {
  const rows = rowsOf("docs/configuration.md");
  const read = new Set<string>();
  parseConfig(
    new Proxy({}, { get: (_, name) => (typeof name === "string" && read.add(name), undefined) }),
  );
  const variableRead = /\b(?:secret|numberVar)\([^)"]*"([A-Z][A-Z0-9_]+)"\)/g;
  for (const [, text] of sources) {
    for (const [, name = ""] of text.matchAll(variableRead)) read.add(name);
  }
  const isPattern = /^PEER_(?:IN|OUT)_|_BASE_URL$/;
  const elsewhere = new Set([
    "CF_VERSION",
    "AI",
    ...BUILT_IN_PROVIDERS.flatMap(({ variables }) => variables),
  ]);
  const names = new Set(
    rows.flatMap(([cell = ""]) =>
      [...cell.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name = ""]) => name),
    ),
  );
  const required = [...read].filter((name) => !isPattern.test(name) && !elsewhere.has(name));
  expect(required.filter((name) => !names.has(name))).toEqual([]);
  const ids = rows.find(([cell]) => cell === "`REGION`")?.[2];
  expect(ids).toBe(REGIONS.map((id) => `\`${id}\``).join(", "));
  const numbers = Object.entries(NUMERIC_VARIABLES).map(
    ([name, row]) => `${name}: ${row.join(" ")}`,
  );
  const documented = rows
    .filter(([cell = ""]) => cell.slice(1, -1) in NUMERIC_VARIABLES)
    .map(([name = "", usual = "", range = ""]) => {
      const row = [usual, ...range.split(" to ")].map(Number);
      return `${name.slice(1, -1)}: ${row.join(" ")}`;
    });
  expect(documented.toSorted()).toEqual(numbers.toSorted());
});

it("docs/webhooks.md lists exactly the events that the gateway emits", () => {
  const table = rowsOf("docs/webhooks.md").flatMap(([cell = ""]) =>
    [...cell.matchAll(/`([a-z_]+\.[a-z_]+)`/g)].map(([, type = ""]) => type),
  );
  expect(table.toSorted()).toEqual(EVENT_TYPES.toSorted());
});

it("the docs for customers describe every header of the gateway", () => {
  const pages = readdirSync(path.join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  const text = pages.map((page) => readPage(`docs/${page}`)).join("\n");
  const headers = sources
    .filter(
      ([name]) =>
        !/^(?:models\/core|models\/providers|accounts\/identity-providers|models\/protocols\/converse)\//.test(
          name,
        ),
    )
    .flatMap(([, source]) =>
      [...source.matchAll(/["'`](x-[a-z-]+[a-z])["'`]/g)].map(([, name = ""]) => name),
    );
  expect(headers).toContain("x-cost-micro");
  expect([...new Set(headers)].filter((name) => !text.includes(name))).toEqual([]);
});

/** Rows of docs/limits.md with the constants of src that they show, in order. */
const LIMITS: Readonly<Record<string, readonly string[]>> = {
  "Body of a paid request": ["shared/http/read-json.ts BODY_BYTES_MAX"],
  "Body of `/v1/messages/count_tokens`": ["shared/http/read-json.ts TOKEN_COUNT_BYTES_MAX"],
  "Providers per list in routing preferences": ["models/core/gateway-fields.ts PROVIDERS_MAX"],
  "Open invitations per organization; new invitations per sender": [
    "accounts/people/invitations.store.ts OPEN_INVITATIONS_MAX",
    "accounts/people/invitations.store.ts HOURLY_INVITATIONS_MAX",
  ],
  "Models in `models`": ["models/core/gateway-fields.ts FALLBACKS_MAX"],
  "Budgets per owner; budgets per session; models per budget": [
    "shared/budgets.ts BUDGETS_MAX",
    "shared/budgets.ts SESSION_BUDGETS_MAX",
    "shared/budgets.ts MODELS_MAX",
  ],
  "`max_concurrent`": ["shared/key-terms.ts CONCURRENT_MAX"],
  "Active pauses per organization": ["shared/pauses.ts PAUSES_MAX"],
  "Length of a budget's window; limit of a token or request budget": [
    "shared/budgets.ts MINUTES_MAX",
    "shared/budgets.ts COUNT_MAX",
  ],
  "Stripe event": ["money/payments/stripe-webhook.route.ts EVENT_BYTES_MAX"],
  "Any other body": ["shared/http/read-json.ts MANAGEMENT_BYTES_MAX"],
  "JSON nesting depth; JSON values": [
    "shared/http/json-text.ts JSON_DEPTH_MAX",
    "shared/http/json-text.ts JSON_VALUES_MAX",
  ],
  "JSON names per object; JSON names per body": [
    "shared/http/json-text.ts JSON_OBJECT_NAMES_MAX",
    "shared/http/json-text.ts JSON_NAMES_MAX",
  ],
  "Messages per request, or items per `/v1/responses` request": [
    "models/core/core-request.ts MESSAGES_MAX",
    "models/protocols/messages/client-request.ts MESSAGES_MAX",
    "models/protocols/responses/client-request.ts INPUT_ITEMS_MAX",
  ],
  "Tools per request": [
    "models/core/core-request.ts TOOLS_MAX",
    "models/protocols/messages/client-request.ts TOOLS_MAX",
    "models/protocols/responses/client-tools.ts TOOLS_MAX",
  ],
  "Prompts per `/v1/completions` request": ["models/endpoints/completions.ts PROMPTS_MAX"],
  "Choices (`n`)": ["models/core/core-request.ts CHOICES_MAX"],
  "Texts per embeddings request; `dimensions`": [
    "models/core/embeddings.ts INPUTS_MAX",
    "models/core/embeddings.ts DIMENSIONS_MAX",
  ],
  "Documents per rerank request": ["models/core/rerank.ts DOCUMENTS_MAX"],
  "Inputs per moderation request": ["models/core/moderation.ts INPUTS_MAX"],
  "Images per request": ["models/core/images.ts IMAGES_MAX"],
  "Input images per image edit; width and height of an input image": [
    "models/core/image-edit.ts SOURCES_MAX",
    "models/core/image-edit.ts SIDE_PIXELS_MAX",
  ],
  "Characters in a transcription's `prompt`": [
    "models/core/transcription.ts PROMPT_CHARACTERS_MAX",
  ],
  "Characters in a speech request's `input`": ["models/core/speech.ts INPUT_CHARACTERS_MAX"],
  "Pages per OCR request": ["models/core/ocr.ts PAGES_MAX"],
  "Tags per request; bytes in a tag's key or value": [
    "shared/tags.ts REQUEST_TAGS_MAX",
    "shared/tags.ts TAG_BYTES_MAX",
  ],
  "Declared tag keys; tag combinations per day with their own totals": [
    "shared/tags.ts TAG_KEYS_MAX",
    "shared/tags.ts TAG_SETS_MAX",
  ],
  "Model name": ["models/core/core-request.ts MODEL_NAME_CHARACTERS_MAX"],
  "Images downloaded per request": [
    "models/core/inline-image.ts IMAGE_BYTES_MAX",
    "models/core/inline-image.ts ALL_BYTES_MAX",
    "models/core/inline-image.ts DOWNLOADS_MAX",
  ],
  "Image URL that isn't a base64 data URL": ["models/core/data-url.ts URL_MAX"],
  "Active keys per organization; new keys per day": [
    "accounts/keys/keys.store.ts ACTIVE_KEYS_MAX",
    "accounts/keys/keys.store.ts NEW_KEYS_MAX",
  ],
  "Active secrets per key; new secrets per day": [
    "shared/key-uses.store.ts ACTIVE_SECRETS_MAX",
    "accounts/keys/secrets.store.ts KEY_ROTATIONS_PER_DAY_MAX",
  ],
  "Overlap of a key's secrets; overlap of a webhook's secrets": [
    "accounts/keys/rotation.ts OVERLAP_MAX_S",
    "events/webhooks/webhooks.route.ts OVERLAP_MAX_S",
  ],
  "Allowed models per key": ["shared/key-terms.ts MODELS_MAX"],
  "Lifetime of a session; origins per session; length of a session token": [
    "shared/session.ts SESSION_MAX_S",
    "accounts/keys/sessions.route.ts ORIGINS_MAX",
    "accounts/keys/session-token.ts SESSION_TOKEN_LENGTH_MAX",
  ],
  "Amount of a placed hold; lifetime of a placed hold without extensions": [
    "money/wallet/routes/holds.route.ts HOLD_DOLLARS_MAX",
    "money/wallet/routes/holds.route.ts HOLD_MAX_S",
  ],
  "Used sessions per organization, counted until two days after they expire": [
    "money/wallet/object/sessions.do.ts SESSIONS_MAX",
  ],
  "Unused sessions that a key can end per day": [
    "money/wallet/object/sessions.do.ts UNUSED_ENDS_MAX",
  ],
  "End users per organization": ["money/wallet/object/end-users.do.ts END_USERS_MAX"],
  "End user ID": ["shared/external-id.ts EXTERNAL_ID_BYTES_MAX"],
  "Budget, quota or credit": ["shared/money.ts DOLLARS_MAX"],
  "Alerts of one kind per end user and day; stored alerts per organization": [
    "money/wallet/object/alerts.do.ts DAILY_ALERTS_MAX",
    "money/wallet/object/alerts.do.ts ALERTS_MAX",
  ],
  "Events of one type caused by one key": ["money/wallet/object/event-log.do.ts HOURLY_EVENTS_MAX"],
  "Stored events per organization": ["money/wallet/object/event-log.do.ts EVENTS_MAX"],
  "Webhooks per organization; tests per webhook": [
    "events/webhooks/webhooks.store.ts WEBHOOKS_MAX",
    "events/webhooks/webhook-deliveries.do.ts TESTS_PER_MINUTE_MAX",
  ],
  "Entries per list in a policy": ["shared/policy.ts ENTRIES_MAX"],
  "Webhook URL": ["events/webhooks/receiver-settings.ts URL_LENGTH_MAX"],
  "Storage time of a response; request body of a stored response": [
    "shared/contracts/settings.ts STORED_RESPONSE_HOURS_MAX",
    "shared/contracts/stored-responses.ts STORED_BODY_BYTES_MAX",
  ],
  "Pending messages per webhook": ["events/webhooks/delivery-rows.do.ts PENDING_DELIVERIES_MAX"],
  "Ledger rows per `usage.settled` message": ["events/webhooks/usage-batches.do.ts BATCH_ROWS"],
  "Characters in a receiver's credential; characters in its event name": [
    "events/webhooks/receiver-settings.ts CREDENTIAL_MAX",
    "events/webhooks/receiver-settings.ts EVENT_NAME_MAX",
  ],
  "Replays per webhook; events per replay": [
    "events/webhooks/deliveries.route.ts EVENTS_PER_REPLAY_MAX",
  ],
  "Hours per usage response": ["money/wallet/routes/usage.route.ts HOURS_MAX"],
  "Days per usage response; groups per usage response": [
    "money/wallet/routes/usage.route.ts DAYS_MAX",
    "money/wallet/rules/usage-totals.ts USAGE_GROUPS_MAX",
  ],
  "Console calls per key; console logins per key": [
    "console/console-session.do.ts CALLS_MAX",
    "console/console-session.do.ts LOGINS_MAX",
  ],
};
/**
 * Limits of configuration, peers, operators, logins, providers and single models, which customers
 * don't meet.
 */
const OTHER =
  /^(?:regions\/|shared\/config\/config\.ts|shared\/failed-request\.ts|operator\/|models\/providers\/|models\/core\/tool-name|console\/session|money\/wallet\/object\/postings|models\/protocols\/messages\/client-tools\.ts NAME_MAX)|TOKEN_ID_MAX|RPM_LIMIT_MAX|PROMPT_CHARACTERS_MAX|PARTIAL_IMAGES_MAX|ocr\.ts RANGES_LENGTH_MAX/;

/** Returns the number of a constant in src, such as `20 * 1024 * 1024` or `7 * OVERLAP_DAY_S`. */
function valueOf(file: string, name: string): number {
  const text = sources.find(([source]) => source === file)?.[1] ?? "";
  const [, words] = new RegExp(`^(?:export )?const ${name} = ([^;]+);`, "m").exec(text) ?? [];
  if (words === undefined) throw new Error(`${file} has no ${name}`);
  const factors = words.replaceAll("_", (at, index: number) =>
    /\d/.test(words[index - 1] ?? "") ? "" : at,
  );
  return factors
    .split("*")
    .map((one) => one.trim())
    .reduce((product, one) => product * (/^\d+$/.test(one) ? Number(one) : valueOf(file, one)), 1);
}

/** Formats a value as a page does. */
function shown(name: string, value: number): string {
  if (name.endsWith("_S")) return `${value / 86_400} day`;
  const isBytes = name.endsWith("BYTES_MAX") && value % 1_048_576 === 0;
  return isBytes ? `${value / 1_048_576} MiB` : value.toLocaleString("en");
}

it("docs/limits.md shows each limit with the value in the source code", () => {
  const rows = new Map(rowsOf("docs/limits.md").map(([what = "", most = ""]) => [what, most]));
  for (const [row, constants] of Object.entries(LIMITS)) {
    const parts = constants.map((constant) => {
      const [file = "", name = ""] = constant.split(" ");
      return shown(name, valueOf(file, name)).replace(/\bmillion$/, "");
    });
    const documented = rows.get(row) ?? `no row ${row}`;
    const order = [...new Set(parts)].join(".*").replaceAll(/[()]/g, ".");
    expect(documented).toMatch(new RegExp(`(?<![\\d,])${order}`));
  }
});

it("docs/limits.md lists every limit that an error or a schema contains", () => {
  const places =
    /(?:(?:[Aa]t most|more than|deeper than|over|from 0 to|1 to) \$\{|maxLength\(|maximum\(|bytesMax: )([A-Z_]+_MAX(?:_S)?)\b/g;
  const used = sources.flatMap(([file, text]) =>
    [...text.matchAll(places)].map(([, name = ""]) => `${file} ${name}`),
  );
  const known = Object.values(LIMITS).flat();
  const isShown = (one: string): boolean => {
    const [file = "", name = ""] = one.split(" ");
    const own = sources.some(([at, text]) => at === file && text.includes(`const ${name} =`));
    return own ? known.includes(one) : known.some((constant) => constant.endsWith(` ${name}`));
  };
  expect(used.length).toBeGreaterThan(30);
  expect(used.filter((one) => !isShown(one) && !OTHER.test(one))).toEqual([]);
});

const IN_WORDS: Readonly<Record<string, number>> = { three: 3, five: 5, seven: 7, ten: 10 };

it.each(REPEATED_LIMITS)(
  "docs/%s.md states a limit's value as in the source code: %s",
  (page, before, constant) => {
    const [, documented = "nothing"] = before.exec(readPage(`docs/${page}.md`)) ?? [];
    const [file = "", name = ""] = constant.split(" ");
    expect(IN_WORDS[documented] ?? Number(documented.replaceAll(",", ""))).toBe(
      valueOf(file, name),
    );
  },
);

it("docs/console.md lists every console page by the label of the page", () => {
  const source = readFileSync(path.join(ROOT, "src/console/browser/pages.ts"), "utf8");
  const pages = [...source.matchAll(/^ {2}\["[\w-]*", "([^"]+)", "/gm)].map(
    ([, title = ""]) => title,
  );
  const documented = rowsOf("docs/console.md").flatMap(([names = ""]) => names.split(", "));
  expect(pages).toContain("Overview");
  expect(documented.filter((name) => name !== "page").toSorted()).toEqual(pages.toSorted());
});

it("docs/providers.md lists every provider together with its variables", () => {
  const rows = new Map(
    rowsOf("docs/providers.md").map(([id = "", ...cells]) => [id, cells.join(" ")]),
  );
  for (const { id, variables } of BUILT_IN_PROVIDERS) {
    const row = rows.get(`\`${id}\``) ?? "no row";
    const isNamed = (variable: string): boolean =>
      row.startsWith("the same") || row.includes(`\`${variable}\``);
    expect(variables.every(isNamed), `${id} ${variables.join(", ")}: ${row}`).toBe(true);
  }
});
