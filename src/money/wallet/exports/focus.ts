import { DAY_MS, timestamp } from "../../../shared/clock.ts";
import { creditKindOf } from "../../../shared/credit-reference.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import type { Tags } from "../../../shared/tags.ts";
import { isUnit, UNIT_TABLE } from "../../../shared/units.ts";
import type { PricedUnit } from "../../../shared/units.ts";
import { listChargeLines, NO_USAGE } from "../../../shared/usage.ts";
import type { ChargeLine, Price } from "../../../shared/usage.ts";
import type { ChargeGroup, LedgerCredit } from "../../../shared/contracts/exports.ts";
import { periodEndMs, periodOfDay } from "../../../shared/period.ts";

/**
 * Columns of FOCUS 1.3 (the FinOps format for cost data), two of FOCUS 1.2, and our own `x_`
 * columns. The public validator requires `CommitmentDiscountStatus`, which is always null.
 */
export const FOCUS_EXPORT_COLUMNS = [
  "BilledCost",
  "BillingAccountId",
  "BillingAccountName",
  "BillingCurrency",
  "BillingPeriodEnd",
  "BillingPeriodStart",
  "ChargeCategory",
  "ChargeClass",
  "ChargeDescription",
  "ChargeFrequency",
  "ChargePeriodEnd",
  "ChargePeriodStart",
  "CommitmentDiscountStatus",
  "ConsumedQuantity",
  "ConsumedUnit",
  "ContractedCost",
  "ContractedUnitPrice",
  "EffectiveCost",
  "HostProviderName",
  "InvoiceId",
  "InvoiceIssuerName",
  "ListCost",
  "ListUnitPrice",
  "PricingCategory",
  "PricingCurrency",
  "PricingCurrencyContractedUnitPrice",
  "PricingCurrencyEffectiveCost",
  "PricingCurrencyListUnitPrice",
  "PricingQuantity",
  "PricingUnit",
  "ProviderName",
  "PublisherName",
  "RegionId",
  "RegionName",
  "ServiceCategory",
  "ServiceName",
  "ServiceProviderName",
  "ServiceSubcategory",
  "SkuId",
  "SkuMeter",
  "SkuPriceDetails",
  "SkuPriceId",
  "SubAccountId",
  "SubAccountName",
  "Tags",
  "x_LedgerAmount",
  "x_Reference",
] as const;
type Column = (typeof FOCUS_EXPORT_COLUMNS)[number];
/** A row of a cost export in the FOCUS format. */
export type FocusRow = { readonly [C in Column]?: string | undefined };

const OPERATOR_NAME = "Turnpike";
const ZERO = "0";
type ChargedItem = ChargeLine[0];
const TOKEN_NAMES: Readonly<Record<Exclude<ChargedItem, PricedUnit>, string>> = {
  input: "input tokens",
  cached: "cached input tokens",
  cache_write: "cache write tokens",
  cache_write_hour: "one-hour cache write tokens",
  output: "output tokens",
};

function meterName(what: ChargedItem): string {
  const name = isUnit(what) ? UNIT_TABLE[what].name : TOKEN_NAMES[what];
  return name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase());
}

type FocusDay = { readonly orgId: string; readonly day: string };

function focusRow({ orgId, day }: FocusDay, columns: FocusRow): FocusRow {
  const start = Date.parse(day);
  const period = periodOfDay(day);
  return {
    BilledCost: ZERO,
    PricingCurrency: "USD",
    PricingCurrencyContractedUnitPrice: columns.ContractedUnitPrice,
    PricingCurrencyEffectiveCost: columns.EffectiveCost,
    PricingCurrencyListUnitPrice: columns.ListUnitPrice,
    BillingAccountId: orgId,
    BillingAccountName: orgId,
    BillingCurrency: "USD",
    BillingPeriodEnd: formatTime(periodEndMs(period, "month")),
    BillingPeriodStart: formatTime(Date.parse(`${period.month}-01`)),
    ChargePeriodEnd: formatTime(start + DAY_MS),
    ChargePeriodStart: formatTime(start),
    InvoiceIssuerName: OPERATOR_NAME,
    HostProviderName: OPERATOR_NAME,
    ProviderName: OPERATOR_NAME,
    PublisherName: OPERATOR_NAME,
    ServiceCategory: "AI and Machine Learning",
    ServiceName: OPERATOR_NAME,
    ServiceProviderName: OPERATOR_NAME,
    ServiceSubcategory: "Generative AI",
    ...columns,
  };
}

function formatTime(ms: number): string {
  return timestamp(ms).replace(/\.\d+Z$/, "Z");
}

export function buildFocusUsageRows(at: FocusDay, group: ChargeGroup): FocusRow[] {
  const { costMicro, chargedMicro } = group;
  const rows: FocusRow[] = [];
  let rest = BigInt(costMicro) * PICOS_PER_MICRO;
  for (const [what, counted, perMillion] of chargedLines(group)) {
    rest -= BigInt(counted) * BigInt(perMillion);
    rows.push(focusRow(at, lineColumns(group, [what, counted, perMillion])));
  }
  if (rest !== 0n) {
    const description = "Rounding of each request to whole micro-credits";
    rows.push(
      focusRow(at, adjustmentColumns(group, { category: "Adjustment", description, rest })),
    );
  }
  const absorbed = BigInt(chargedMicro - costMicro) * PICOS_PER_MICRO;
  if (absorbed !== 0n) {
    const description = "Cost beyond the balance, absorbed by the operator";
    const columns = { category: "Credit", description, rest: absorbed } as const;
    rows.push(focusRow(at, adjustmentColumns(group, columns)));
  }
  return rows;
}

function chargedLines({ price, lines }: ChargeGroup): ChargeLine[] {
  return priceLines(price).flatMap(([what, , perMillion]): ChargeLine[] => {
    const counted = lines[what] ?? 0;
    return counted === 0 ? [] : [[what, counted, perMillion]];
  });
}

function priceLines(price: Price): readonly ChargeLine[] {
  return listChargeLines(price, { ...NO_USAGE, cacheWrite: 1, cacheWriteHour: 1 });
}

function sharedColumns({ keyId, model, provider, region, tags }: ChargeGroup): FocusRow {
  return {
    HostProviderName: provider,
    PublisherName: model.split("/")[0] ?? model,
    RegionId: region,
    RegionName: region.toUpperCase(),
    SubAccountId: keyId,
    SubAccountName: keyId,
    Tags: tags === "" ? undefined : JSON.stringify(parseStoredJson<Tags>(tags)),
  };
}

function lineColumns(group: ChargeGroup, [what, counted, perMillion]: ChargeLine): FocusRow {
  const meter = meterName(what);
  const unit = meter.slice(meter.lastIndexOf(" ") + 1);
  const picos = BigInt(counted) * BigInt(perMillion);
  const cost = decimalText(picos, 12);
  const unitPrice = decimalText(BigInt(perMillion), 6);
  const sku = `${group.model}/${what}`;
  return {
    ...sharedColumns(group),
    ChargeCategory: "Usage",
    ChargeDescription: `${group.model}: ${meter}`,
    ChargeFrequency: "Usage-Based",
    ConsumedQuantity: `${counted}.0`,
    ConsumedUnit: unit,
    ContractedCost: cost,
    ContractedUnitPrice: unitPrice,
    EffectiveCost: cost,
    ListCost: cost,
    ListUnitPrice: unitPrice,
    PricingCategory: "Standard",
    PricingQuantity: decimalText(BigInt(counted), 6),
    PricingUnit: `1000000 ${unit}`,
    SkuId: sku,
    SkuMeter: meter,
    SkuPriceId: `${sku}@${perMillion}`,
    x_LedgerAmount: decimalText(-picos, 12),
  };
}

function adjustmentColumns(
  group: ChargeGroup,
  {
    category,
    description,
    rest,
  }: {
    readonly category: "Adjustment" | "Credit";
    readonly description: string;
    readonly rest: bigint;
  },
): FocusRow {
  const cost = decimalText(rest, 12);
  return {
    ...sharedColumns(group),
    ChargeCategory: category,
    ChargeDescription: `${group.model}: ${description}`,
    ChargeFrequency: "Usage-Based",
    ContractedCost: cost,
    EffectiveCost: cost,
    ListCost: cost,
    x_LedgerAmount: decimalText(-rest, 12),
  };
}

export function buildFocusCreditRows(
  at: FocusDay,
  credit: LedgerCredit,
  taxMicro: number | null,
): FocusRow[] {
  const { amountMicro, reference } = credit;
  const amount = decimalText(BigInt(amountMicro), 6);
  const money = { ChargeFrequency: "One-Time", x_LedgerAmount: amount, x_Reference: reference };
  const kind = creditKindOf(credit);
  if (kind === "payment") {
    const tax = taxMicro === null || taxMicro === 0 ? [] : [taxRow(at, reference, taxMicro)];
    return [focusRow(at, { ...money, ...paymentColumns(amount) }), ...tax];
  }
  if (kind === "reversal" || kind === "return") {
    const columns = {
      ...costColumns(amount, ZERO),
      ChargeCategory: "Purchase",
      ChargeClass: "Correction",
    };
    const description = "Refund or dispute of a payment";
    return [focusRow(at, { ...money, ...columns, ChargeDescription: description })];
  }
  // The operator's credits are never billed, so they reduce the effective cost.
  const effective = kind === "rebuild" ? ZERO : decimalText(-BigInt(amountMicro), 6);
  const [category, description] = CREDIT_DESCRIPTIONS[kind];
  const columns = { ChargeCategory: category, ChargeDescription: description };
  const cost = { ContractedCost: effective, EffectiveCost: effective, ListCost: effective };
  return [focusRow(at, { ...money, ...columns, ...cost })];
}

const CREDIT_DESCRIPTIONS = {
  credit: ["Credit", "Credit granted by the operator"],
  correction: ["Adjustment", "Correction of the balance by the operator"],
  rebuild: ["Adjustment", "Balance restored after a loss of the wallet"],
} as const;

function costColumns(billed: string, effective: string): FocusRow {
  return {
    BilledCost: billed,
    ContractedCost: billed,
    EffectiveCost: effective,
    ListCost: billed,
  };
}

/**
 * Returns the columns of a credit purchase. The effective cost arises only when the credits are
 * used.
 */
function paymentColumns(amount: string): FocusRow {
  return {
    ...costColumns(amount, ZERO),
    ChargeCategory: "Purchase",
    ChargeDescription: "Prepaid credits",
    ContractedUnitPrice: "1",
    ListUnitPrice: "1",
    PricingCategory: "Standard",
    PricingQuantity: amount,
    PricingUnit: "Credits",
    SkuId: "credits",
    SkuMeter: "Credits",
    SkuPriceId: "credits@1",
  };
}

function taxRow(at: FocusDay, reference: string, taxMicro: number): FocusRow {
  const amount = decimalText(BigInt(taxMicro), 6);
  return focusRow(at, {
    ...costColumns(amount, amount),
    ChargeCategory: "Tax",
    ChargeDescription: "Tax on prepaid credits",
    ChargeFrequency: "One-Time",
    x_LedgerAmount: ZERO,
    x_Reference: reference,
  });
}

/** Returns CSV lines (RFC 4180). */
export function formatFocusCsv(rows: readonly FocusRow[]): string {
  return rows
    .map((row) => FOCUS_EXPORT_COLUMNS.map((column) => csvField(row[column])).join(",") + "\r\n")
    .join("");
}

export const FOCUS_CSV_HEADER = `${FOCUS_EXPORT_COLUMNS.join(",")}\r\n`;

function csvField(value: string | undefined): string {
  if (value === undefined) return "";
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/** Picodollars per micro-credit. Tokens times a price per million tokens are whole picodollars. */
const PICOS_PER_MICRO = 1_000_000n;

function decimalText(amount: bigint, scale: number): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(scale + 1, "0");
  const fraction = digits.slice(-scale).replace(/0+$/, "");
  const whole = digits.slice(0, -scale);
  return `${amount < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}
