import * as z from "zod/mini";
import { created } from "../shared/http/endpoint.ts";
import { singleValueSchema, parseFields, parseQuery } from "../shared/http/parse-body.ts";
import { DAY_MS, timestamp } from "../shared/clock.ts";
import { invalid, success } from "../shared/failure.ts";
import type { Failure, Result } from "../shared/failure.ts";
import { logAlert } from "../shared/log.ts";
import { microsOfDollars } from "../shared/money.ts";
import { callObject } from "../shared/reach-object.ts";
import type { CostGroup, CostQuery, ProviderCostReport } from "../shared/contracts/reports.ts";
import { isLargeDifference } from "./bill-difference.ts";
import { storeBills, readProviderBills } from "./bills.store.ts";
import type { Bill } from "./bills.store.ts";
import { pageActiveOrganizations } from "./find.store.ts";
import type { OrganizationOfMatch } from "./find.store.ts";
import type { OperatorCall } from "./operator-context.ts";

const WALLETS_MAX = 100;
const BILLS_MAX = 500;
/** Maximum ms to read a wallet's costs. */
const COSTS_MS_MAX = 15_000;

const day = singleValueSchema.check(
  z.regex(/^\d{4}-\d{2}-\d{2}$/, "must be a day such as 2026-11-21"),
);
export const marginQuerySchema = z.object({
  from: day,
  to: day,
  by: z._default(z.enum(["provider", "model", "organization"]), "provider"),
  after: z._default(singleValueSchema, ""),
});
const bill = z.object({
  provider: z.string().check(z.minLength(1), z.maxLength(100)),
  day,
  dollars: z.number().check(
    z.minimum(0),
    z.refine((value) => microsOfDollars(value) !== null, "must be dollars with at most 6 decimals"),
  ),
  counted_micro: z.optional(z.int().check(z.minimum(0))),
});
export const newBillsSchema = z.object({
  rows: z.array(bill).check(z.minLength(1), z.maxLength(BILLS_MAX)),
});

/**
 * Handles `GET /margin`. Returns charges and costs for a page of organizations. `missing` lists
 * organizations with an unreadable wallet. Compares bills only if the report is by provider and one
 * page covers all organizations.
 */
export async function getMargin(call: OperatorCall) {
  const fields = parseQuery(marginQuerySchema, call.url);
  if (!fields.ok) return fields;
  const { from, to, by, after } = fields.value;
  const span = parseDays(from, to);
  if (!span.ok) return span;
  const query = {
    ...span.value,
    by: by === "model" ? by : ("provider" as const),
    model: null,
    price: null,
  };
  const page = await readCosts(call, query, after);
  const { reports, missing, nextAfter } = page;
  const groups = sumByDayAndGroup(
    reports.flatMap(({ slug, report }) =>
      report.data.map((one) => (by === "organization" ? { ...one, group: slug } : one)),
    ),
  );
  const isComplete = after === "" && nextAfter === null && missing.length === 0;
  const comparesBills = isComplete && by === "provider";
  const bills = comparesBills ? await readProviderBills(call.db, { from, to }) : [];
  for (const one of findDifferingBills(groups, bills)) logAlert("provider_bill_differs", one);
  const completeFrom = Math.max(
    span.value.fromMs,
    ...reports.map(({ report }) => report.completeFrom),
  );
  return success({
    from,
    to,
    by,
    data: groups.map((group) => groupView(group, bills)),
    complete_from: timestamp(completeFrom),
    missing: missing.map(({ slug }) => slug),
    ...(nextAfter !== null && { next_after: nextAfter }),
  });
}

/**
 * Handles `POST /costs`, which stores bills. Alerts on large differences if the request includes
 * the sums of `GET /margin`.
 */
export async function postCosts(call: OperatorCall) {
  const fields = parseFields(newBillsSchema, [], call.body);
  if (!fields.ok) return fields;
  const bills: Bill[] = [];
  for (const { provider, day: of, dollars, counted_micro: counted } of fields.value.rows) {
    const billed = { provider, day: of, billedMicro: microsOfDollars(dollars) ?? 0 };
    bills.push(billed);
    if (counted === undefined) continue;
    const sum = { day: of, group: provider, boughtMicro: counted };
    for (const one of findDifferingBills([sum], [billed])) logAlert("provider_bill_differs", one);
  }
  await storeBills(call.db, bills, { name: call.actor.id ?? "", nowMs: call.now });
  return created({ imported: bills.length });
}

function parseDays(from: string, to: string): Result<{ fromMs: number; beforeMs: number }> {
  const [fromMs, lastMs] = [Date.parse(from), Date.parse(to)];
  if (Number.isNaN(fromMs)) return invalid("from must be a valid day.", "from");
  if (Number.isNaN(lastMs)) return invalid("to must be a valid day.", "to");
  if (lastMs < fromMs) return invalid("from must not be after to.", "from");
  return success({ fromMs, beforeMs: lastMs + DAY_MS });
}

export type OrganizationCosts = Omit<OrganizationOfMatch, "name"> & {
  readonly report: ProviderCostReport;
};

export type CostsPage = {
  readonly reports: readonly OrganizationCosts[];
  readonly missing: readonly { readonly slug: string; readonly failure: Failure }[];
  readonly nextAfter: string | null;
};

/** Reads the costs of a page of organizations from their wallets. */
export async function readCosts(
  { db, wallet }: OperatorCall,
  query: CostQuery,
  after: string,
): Promise<CostsPage> {
  const page = await pageActiveOrganizations(db, { after, limit: WALLETS_MAX + 1 }, 0);
  const shown = page.slice(0, WALLETS_MAX);
  const reports: OrganizationCosts[] = [];
  const missing: CostsPage["missing"][number][] = [];
  for (const { id, slug } of shown) {
    const report = await callObject(() => wallet(id).costs(query), {
      attemptsMax: 2,
      budgetMs: COSTS_MS_MAX,
    });
    if (report.ok) reports.push({ id, slug, report: report.value });
    else missing.push({ slug, failure: report.failure });
  }
  const nextAfter = page.length > WALLETS_MAX ? (shown.at(-1)?.id ?? null) : null;
  return { reports, missing, nextAfter };
}

function sumByDayAndGroup(groups: readonly CostGroup[]): readonly CostGroup[] {
  const sums = new Map<string, CostGroup>();
  for (const one of groups) {
    const name = `${one.day} ${one.group}`;
    const sum = sums.get(name) ?? {
      ...one,
      requests: 0,
      chargedMicro: 0,
      boughtMicro: 0,
      unknown: 0,
    };
    sum.requests += one.requests;
    sum.chargedMicro += one.chargedMicro;
    sum.boughtMicro += one.boughtMicro;
    sum.unknown += one.unknown;
    sums.set(name, sum);
  }
  return [...sums.values()].toSorted((a, b) =>
    `${a.day} ${a.group}` < `${b.day} ${b.group}` ? -1 : 1,
  );
}

function groupView(group: CostGroup, bills: readonly Bill[]) {
  const billed = bills.find(
    ({ provider, day: of }) => provider === group.group && of === group.day,
  );
  return {
    day: group.day,
    group: group.group,
    requests: group.requests,
    charged_micro: group.chargedMicro,
    bought_micro: group.boughtMicro,
    margin_micro: group.chargedMicro - group.boughtMicro,
    unknown_requests: group.unknown,
    billed_micro: billed?.billedMicro ?? null,
    difference_micro: billed === undefined ? null : billed.billedMicro - group.boughtMicro,
  };
}

/** Returns the bills that differ much from the counted costs, because a price or usage is wrong. */
export function findDifferingBills(
  groups: readonly Pick<CostGroup, "day" | "group" | "boughtMicro">[],
  bills: readonly Bill[],
) {
  return bills.flatMap(({ provider, day: of, billedMicro }) => {
    const group = groups.find((one) => one.group === provider && one.day === of);
    const counted = group?.boughtMicro ?? 0;
    return isLargeDifference(billedMicro, counted)
      ? [{ provider, day: of, billed_micro: billedMicro, counted_micro: counted }]
      : [];
  });
}
