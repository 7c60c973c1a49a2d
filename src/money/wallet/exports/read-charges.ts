import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { callObject } from "../../../shared/reach-object.ts";
import type { ChargesPage } from "../../../shared/contracts/exports.ts";
import type { PaymentsCalls } from "../../../shared/contracts/payments.ts";
import type { WalletCalls } from "../../../shared/contracts/wallet.ts";
import { creditRows, csvOf, paymentOf, usageRows } from "./focus.ts";
import type { FocusRow } from "./focus.ts";

const GROUPS_PER_PAGE = 500;

type ExportSources = {
  readonly orgId: string;
  readonly wallet: () => Pick<WalletCalls, "chargesOfDay">;
  readonly payments: () => Pick<PaymentsCalls, "taxes">;
};

export async function* focusPages(
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
      const credits = await creditsOf({ orgId, day }, page.value, payments);
      if (!credits.ok) return yield credits;
      const usage = page.value.groups.flatMap((group) => usageRows({ orgId, day }, group));
      yield success(csvOf([...usage, ...credits.value]));
      after = page.value.nextAfter;
      isFirst = false;
    }
  }
}

async function creditsOf(
  at: { readonly orgId: string; readonly day: string },
  { credits }: ChargesPage,
  payments: ExportSources["payments"],
): Promise<Result<FocusRow[]>> {
  const ids = credits.map(paymentOf).filter((id) => id !== null);
  const taxes = ids.length === 0 ? success({}) : await callObject(() => payments().taxes(ids));
  if (!taxes.ok) return taxes;
  const taxOf: Readonly<Record<string, number>> = taxes.value;
  return success(
    credits.flatMap((one) => creditRows(at, one, taxOf[paymentOf(one) ?? ""] ?? null)),
  );
}
