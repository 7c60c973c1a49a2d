import * as z from "zod/mini";
import { timeParameterSchema, parseFields } from "../shared/http/parse-body.ts";
import { timestamp } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import type { CostQuery } from "../shared/contracts/reports.ts";
import { findOrganizationIdBySlug } from "../accounts/organizations/organizations.store.ts";
import { readCosts } from "./margin.ts";
import type { CostsPage, OrganizationCosts } from "./margin.ts";
import { parsePriceFields } from "../shared/usage.ts";
import type { OperatorCall } from "./operator-context.ts";
import { findOrganizationOfCall } from "./organization-call.ts";
import { priceFieldsSchema, findCallKindOfModel, refusePriceUnits } from "./prices.ts";

const ID_MAX = 100;
/** Maximum ms until a request is settled. Sums of older requests are final. */
const SETTLEMENT_DELAY_MAX_MS = 2 * 3_600_000;

export const priceCorrectionSchema = z.object({
  id: z
    .string()
    .check(z.regex(/^[\w.-]{1,100}$/, `must be 1 to ${ID_MAX} letters, digits, dots and hyphens`)),
  organization: z.optional(z.string()),
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  from: timeParameterSchema,
  to: timeParameterSchema,
  price: priceFieldsSchema,
  dry_run: z._default(z.boolean(), true),
  after: z._default(z.string(), ""),
});
type Fields = z.infer<typeof priceCorrectionSchema>;

/**
 * Handles `POST /rerate`. Credits the amount that a model's requests would have saved at another
 * price, once per organization and ID. Changes no receipt.
 */
export async function postRerate(call: OperatorCall) {
  const fields = parseFields(priceCorrectionSchema, [], call.body);
  if (!fields.ok) return fields;
  const { id, model, from, to, dry_run: isDry, after } = fields.value;
  if (to <= from) return invalid("from must be before to.", "from");
  if (!isDry && to > call.now - SETTLEMENT_DELAY_MAX_MS) {
    return invalid(
      "to must be at least two hours ago, because later requests may not be settled.",
      "to",
    );
  }
  const kind = findCallKindOfModel(call, model) ?? "chat";
  const refused = refusePriceUnits({ item: model, kind, price: fields.value.price }, "price");
  if (refused !== null) return refused;
  const price = parsePriceFields(fields.value.price);
  const query: CostQuery = { fromMs: from, beforeMs: to, by: "model", model, price };
  const requested = await readReports(call, query, fields.value, after);
  if (!requested.ok) return requested;
  const { reports, nextAfter } = requested.value;
  const incompleteReport = reports.find(({ report }) => report.completeFrom > from);
  if (incompleteReport !== undefined) {
    const known = timestamp(incompleteReport.report.completeFrom);
    const message = `from: the receipts of the organization ${incompleteReport.slug} are complete only from ${known} on. Choose a later time.`;
    return invalid(message, "from");
  }
  const reportsToCredit = reports.filter(({ report }) => report.lessMicro > 0);
  const organizations: Credited[] = [];
  for (const one of reportsToCredit) {
    const view = await creditOrganization(call, { id, isDry }, one);
    if (!view.ok) return view;
    organizations.push(view.value);
  }
  const total = reportsToCredit.reduce((sum, { report }) => sum + report.lessMicro, 0);
  return success({
    id,
    dry_run: isDry,
    organizations,
    total_micro: total,
    ...(nextAfter !== null && { next_after: nextAfter }),
  });
}

type Credited = {
  readonly organization: string;
  readonly requests: number;
  readonly credit_micro: number;
  readonly result: "would_credit" | "credited" | "credited_otherwise";
};

async function readReports(
  call: OperatorCall,
  query: CostQuery,
  { organization }: Fields,
  after: string,
): Promise<Result<Pick<CostsPage, "reports" | "nextAfter">>> {
  if (organization === undefined) {
    const page = await readCosts(call, query, after);
    const [first] = page.missing; // fail, so that each organization gets its credit
    return first === undefined ? success(page) : refuse(first.failure);
  }
  const named = (await findOrganizationIdBySlug(call.db, organization)) ?? organization;
  const found = await findOrganizationOfCall({ ...call, params: { id: named } });
  if (!found.ok) return found;
  const { id, slug } = found.value;
  const report = await call.wallet(id).costs(query);
  return report.ok
    ? success({ reports: [{ id, slug, report: report.value }], nextAfter: null })
    : report;
}

async function creditOrganization(
  call: OperatorCall,
  { id, isDry }: { readonly id: string; readonly isDry: boolean },
  { id: orgId, slug, report }: OrganizationCosts,
): Promise<Result<Credited>> {
  const view = { organization: slug, requests: report.requests, credit_micro: report.lessMicro };
  if (isDry) return success({ ...view, result: "would_credit" });
  const reference = `rerate:${id}`;
  const answer = await call
    .wallet(orgId)
    .credit({ amountMicro: report.lessMicro, reference, actor: call.actor });
  if (answer.ok) return success({ ...view, result: "credited" });
  const isOther = answer.failure.kind === "conflict";
  return isOther ? success({ ...view, result: "credited_otherwise" }) : answer;
}
