import { priceOn } from "../../src/models/catalog/price.ts";
import type { CatalogEntry, RouteEntry } from "../../src/models/catalog/entry.ts";
import type { ListedModel } from "./lists.ts";

export type Finding = {
  readonly provider: string;
  readonly model: string;
  readonly upstream_id: string;
  readonly finding: "retired" | "ending" | "missing" | "price";
  readonly detail: string;
};

const MICROS_PER_DOLLAR = 1_000_000;
/** Relative rounding error of prices in a list. */
const TOLERANCE = 0.001;

/** A provider, its list, today's UTC day and the last day on which an end is reported. */
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
  route: RouteEntry,
  listed: ListedModel | undefined,
  { today, until }: Pick<ProviderComparison, "today" | "until">,
): Pick<Finding, "finding" | "detail"> | null {
  if (listed === undefined) return { finding: "missing", detail: "not in the provider's list" };
  const { isRetired, ends, price } = listed;
  if (isRetired) return { finding: "retired", detail: ends ?? "now" };
  if (ends !== null && ends <= until) return { finding: "ending", detail: ends };
  if (price === null) return null;
  const known = priceOn(route, today).price;
  const changes = (["input", "output"] as const).flatMap((field) => {
    const ours = known[field] / MICROS_PER_DOLLAR;
    const isSame = Math.abs(price[field] - ours) <= TOLERANCE * ours;
    return isSame ? [] : [`${field} $${price[field]}, here $${ours}`];
  });
  return changes.length === 0 ? null : { finding: "price", detail: changes.join("; ") };
}
