import type { Command } from "commander";
import { getPriceOnDay } from "../../src/models/catalog/price.ts";
import type { CatalogEntry, ModelRouteEntry } from "../../src/models/catalog/entry.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { DAY_MS } from "../../src/shared/clock.ts";
import { PROVIDER_LISTS, readList } from "../catalog-check/lists.ts";
import type { ListedModel } from "../catalog-check/lists.ts";
import { wholeNumber, WrongUsage } from "./arguments.ts";
import { examples, setFailed, printNote, printLine } from "./session.ts";
import { table } from "./words.ts";

const DAYS = 60;
const DAYS_MAX = 3650;

type Options = { readonly provider?: string; readonly days: number; readonly json?: true };
type UnreadableList = { readonly provider: string; readonly reason: string };

export function addCatalogCheck(program: Command): void {
  const catalog = program.commands.find((one) => one.name() === "catalog");
  if (catalog === undefined) throw new Error("the operations have no catalog");
  const check = catalog
    .command("check")
    .description(
      "compare the built-in models with the providers' model lists, without calling a region",
    )
    .option("--provider <id>", "only this provider")
    .option(
      "--days <days>",
      "report models that end within this number of days",
      wholeNumber(0, DAYS_MAX),
      DAYS,
    )
    .addHelpText(
      "after",
      `
Reports models that are retired, end soon, are missing from the list or have another price.
A missing model may be renamed, redirected or not enabled for your account.
Environment: the providers' own keys (${PROVIDER_LISTS.map(({ secret }) => secret).join(", ")}).
Providers without a key are not checked. Only Together and xAI list prices. Bedrock and others have no list here.

Exits with 0 if there are no findings, 1 if there are findings or a list can't be read, or 2 for wrong usage.`,
    );
  examples(check, "catalog check", "catalog check --provider openai --days 90 --json");
  check.action(async () => {
    const options = check.optsWithGlobals<Options>();
    const chosen = PROVIDER_LISTS.filter(
      ({ provider }) => options.provider === undefined || options.provider === provider,
    );
    if (chosen.length === 0) {
      const known = PROVIDER_LISTS.map(({ provider }) => provider).join(", ");
      throw new WrongUsage(`--provider must be one of ${known}.`);
    }
    const { checked, skipped, unread, findings } = await checkLists(chosen, options.days);
    if (checked.length + unread.length === 0) {
      throw new WrongUsage(
        `Set at least one provider key: ${chosen.map(({ secret }) => secret).join(", ")}.`,
      );
    }
    if (options.json === true) printLine(JSON.stringify({ checked, skipped, unread, findings }));
    else printLine(wordsOf(checked, findings));
    if (skipped.length > 0) {
      printNote(`Not checked, because their keys aren't set: ${skipped.join(", ")}.`);
    }
    for (const { provider, reason } of unread) printNote(`error: ${provider}: ${reason}`);
    if (findings.length + unread.length > 0) setFailed();
  });
}

async function checkLists(lists: typeof PROVIDER_LISTS, days: number) {
  const today = new Date().toISOString().slice(0, 10);
  const until = new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
  const checked: string[] = [];
  const skipped: string[] = [];
  const unread: UnreadableList[] = [];
  const findings: Finding[] = [];
  for (const list of lists) {
    const { provider, secret } = list;
    const key = process.env[secret] ?? "";
    if (key === "") {
      skipped.push(provider);
      continue;
    }
    const baseUrl = process.env[secret.replace("_API_KEY", "_BASE_URL")] ?? list.baseUrl;
    try {
      const listed = await readList({ ...list, baseUrl }, key);
      findings.push(...compareCatalog(CATALOG, { provider, listed, today, until }));
      checked.push(provider);
    } catch (error) {
      const reason = error instanceof Error ? error.message : "unreadable";
      unread.push({ provider, reason: reason.replaceAll(key, "[key]").slice(0, 200) });
    }
  }
  return { checked, skipped, unread, findings };
}

function wordsOf(checked: readonly string[], findings: readonly Finding[]): string {
  const names = checked.join(", ") || "none";
  if (findings.length === 0) return `Checked: ${names}. No differences.`;
  return `${table(findings, "finding, provider, model, upstream_id, detail")}\n\nChecked: ${names}.`;
}

type Finding = {
  readonly provider: string;
  readonly model: string;
  readonly upstream_id: string;
  readonly finding: "retired" | "ending" | "missing" | "price";
  readonly detail: string;
};

const MICROS_PER_DOLLAR = 1_000_000;
/** Relative rounding error of prices in a list. */
const TOLERANCE = 0.001;

/**
 * A provider, its list, today's UTC day, and the last day of the period in which announced ends are
 * reported.
 */
type ProviderComparison = {
  readonly provider: string;
  readonly listed: readonly ListedModel[];
  readonly today: string;
  readonly until: string;
};

/** Returns the differences of a provider's routes in the catalog's order. */
export function compareCatalog(
  catalog: readonly CatalogEntry[],
  { provider, listed, today, until }: ProviderComparison,
): readonly Finding[] {
  const byName = new Map(listed.flatMap((one) => one.names.map((name) => [name, one])));
  return catalog.flatMap(({ id: model, routes }) =>
    routes
      .filter((route) => route.provider === provider)
      .flatMap((route) => {
        const about = { provider, model, upstream_id: route.upstreamId };
        const found = differenceOf(route, byName.get(route.upstreamId), { today, until });
        return found === null ? [] : [{ ...about, ...found }];
      }),
  );
}

function differenceOf(
  route: ModelRouteEntry,
  listed: ListedModel | undefined,
  { today, until }: Pick<ProviderComparison, "today" | "until">,
): Pick<Finding, "finding" | "detail"> | null {
  if (listed === undefined) return { finding: "missing", detail: "not in the provider's list" };
  const { isRetired, ends, price } = listed;
  if (isRetired) return { finding: "retired", detail: ends ?? "now" };
  if (ends !== null && ends <= until) return { finding: "ending", detail: ends };
  if (price === null) return null;
  const known = getPriceOnDay(route, today).price;
  const changes = (["input", "output"] as const).flatMap((field) => {
    const ours = known[field] / MICROS_PER_DOLLAR;
    const isSame = Math.abs(price[field] - ours) <= TOLERANCE * ours;
    return isSame ? [] : [`${field} $${price[field]}, here $${ours}`];
  });
  return changes.length === 0 ? null : { finding: "price", detail: changes.join("; ") };
}
