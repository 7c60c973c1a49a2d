import * as z from "zod/mini";
import type { AppContext } from "../../../shared/http/context.ts";
import { fail } from "../../../shared/http/context.ts";
import { singleValueSchema, parseQuery } from "../../../shared/http/parse-body.ts";
import { DAY_MS, now } from "../../../shared/clock.ts";
import { paymentIdOfCredit } from "../../../shared/credit-reference.ts";
import { objectsOf } from "../../../shared/contracts/objects.ts";
import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { logWarning } from "../../../shared/log.ts";
import { periodEndMs, periodOf, periodOfDay } from "../../../shared/period.ts";
import { callWalletOfCaller } from "../routes/reads.route.ts";
import { daySchema as dayField, parseDayStartMs } from "../routes/usage.route.ts";
import {
  FOCUS_CSV_HEADER,
  buildFocusCreditRows,
  formatFocusCsv,
  buildFocusUsageRows,
} from "./focus.ts";
import { callObject } from "../../../shared/reach-object.ts";
import type { ChargesPage } from "../../../shared/contracts/exports.ts";
import type { PaymentsMethods } from "../../../shared/contracts/payments.ts";
import type { WalletMethods } from "../../../shared/contracts/wallet.ts";
import type { FocusRow } from "./focus.ts";

const month = singleValueSchema.check(
  z.refine((text) => parseDayStartMs(`${text}-01`) !== null, "must be a month such as 2026-11"),
);
export const exportQuerySchema = z.object({ month: z.optional(month), day: z.optional(dayField) });

export async function listExportsRoute(c: AppContext) {
  const query = { day: periodOf(now(c.env)).day, after: null, limit: 1 };
  const page = await callWalletOfCaller(c, (wallet) => wallet.chargesOfDay(query));
  return page.ok ? success({ complete_through: page.value.completeThrough }) : page;
}

export async function exportFocusRoute(c: AppContext): Promise<Response> {
  const requested = parseExportRange(c);
  if (!requested.ok) return fail(c, requested.failure);
  const { orgId } = c.var.admitted.caller;
  const { wallet, payments } = objectsOf(c.env);
  const sources = { orgId, wallet: () => wallet(orgId), payments: () => payments(orgId) };
  const pages = readExportPages(sources, requested.value.days);
  const first = await pages.next();
  if (first.done === true) return csvResponse(requested.value.name, csvStream("", pages, orgId));
  if (!first.value.ok) return fail(c, first.value.failure);
  return csvResponse(requested.value.name, csvStream(first.value.value, pages, orgId));
}

type ExportRange = { readonly name: string; readonly days: readonly string[] };

function parseExportRange(c: AppContext): Result<ExportRange> {
  const query = parseQuery(exportQuerySchema, c.req.url);
  if (!query.ok) return query;
  const { month: whole, day: one } = query.value;
  if (whole !== undefined && one !== undefined) {
    return invalid("Send either 'month' or 'day', but not both.", "day");
  }
  if (one !== undefined) return success({ name: one, days: [one] });
  const name = whole ?? periodOf(now(c.env)).month;
  const first = `${name}-01`;
  const endMs = Math.min(periodEndMs(periodOfDay(first), "month"), now(c.env) + DAY_MS);
  const days: string[] = [];
  for (let ms = Date.parse(first); ms < endMs; ms += DAY_MS) days.push(periodOf(ms).day);
  return success({ name, days });
}

function csvResponse(name: string, body: ReadableStream<Uint8Array>): Response {
  return new Response(body, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="focus-${name}.csv"`,
    },
  });
}

/**
 * Returns a CSV stream. If a read fails, the stream fails too, so that a partial file doesn't look
 * complete.
 */
function csvStream(
  first: string,
  pages: AsyncGenerator<Result<string>>,
  orgId: string,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(FOCUS_CSV_HEADER + first)),
    async pull(controller) {
      const page = await pages.next();
      if (page.done === true) return controller.close();
      if (page.value.ok) return controller.enqueue(encoder.encode(page.value.value));
      logWarning("export_broken", { org_id: orgId, failure: page.value.failure.kind });
      return controller.error(new Error("the export broke"));
    },
  });
}

const GROUPS_PER_PAGE = 500;

type ExportSources = {
  readonly orgId: string;
  readonly wallet: () => Pick<WalletMethods, "chargesOfDay">;
  readonly payments: () => Pick<PaymentsMethods, "taxes">;
};

export async function* readExportPages(
  { orgId, wallet, payments }: ExportSources,
  days: readonly string[],
): AsyncGenerator<Result<string>> {
  for (const day of days) {
    for (let after: string | null = null, isFirst = true; isFirst || after !== null;) {
      const query: { day: string; after: string | null; limit: number } = {
        day,
        after,
        limit: GROUPS_PER_PAGE,
      };
      const page: Result<ChargesPage> = await callObject(() => wallet().chargesOfDay(query));
      if (!page.ok) return yield page;
      const credits = await creditRowsOf({ orgId, day }, page.value, payments);
      if (!credits.ok) return yield credits;
      const usage = page.value.groups.flatMap((group) =>
        buildFocusUsageRows({ orgId, day }, group),
      );
      yield success(formatFocusCsv([...usage, ...credits.value]));
      after = page.value.nextAfter;
      isFirst = false;
    }
  }
}

async function creditRowsOf(
  at: { readonly orgId: string; readonly day: string },
  { credits }: ChargesPage,
  payments: ExportSources["payments"],
): Promise<Result<FocusRow[]>> {
  const ids = credits.map(paymentIdOfCredit).filter((id) => id !== null);
  const taxes = ids.length === 0 ? success({}) : await callObject(() => payments().taxes(ids));
  if (!taxes.ok) return taxes;
  const taxOf: Readonly<Record<string, number>> = taxes.value;
  return success(
    credits.flatMap((one) =>
      buildFocusCreditRows(at, one, taxOf[paymentIdOfCredit(one) ?? ""] ?? null),
    ),
  );
}
