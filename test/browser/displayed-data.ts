import type { Page } from "playwright-core";
import {
  formatExact,
  formatBalance,
  dollarsToMicros,
  formatCharge,
} from "../../src/console/browser/lib/money.ts";
import { pageLoaded } from "./browser.ts";

/** The newest JSON of each address that a page read. */
export type Responses = ReadonlyMap<string, unknown>;

/** Collects the responses that a page receives from now on. */
export function collectResponses(page: Page): Responses {
  const responses = new Map<string, unknown>();
  page.on("response", (response) => {
    const { pathname, search } = new URL(response.url());
    if (!pathname.startsWith("/console/api/") || response.request().method() !== "GET") return;
    void response.json().then(
      (json) => responses.set(pathname + search, json),
      () => undefined,
    );
  });
  return responses;
}

/** Waits until the page shows all that it reads. */
export async function pageDrawn(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  await page.waitForLoadState("networkidle");
  await pageLoaded(page);
}

export type Json = Readonly<Record<string, unknown>>;

/** Calls `take` with each field of the responses and the object that has it. */
function eachField(value: unknown, take: (name: string, value: unknown) => void): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, field] of Object.entries(value)) {
    take(Array.isArray(value) ? "" : name, field);
    eachField(field, take);
  }
}

/** Returns all rows below `name` of the responses. */
export function rowsOf(responses: Responses, name: string): readonly Json[] {
  return [...responses.values()].flatMap((json) => ((json as Json)[name] ?? []) as Json[]);
}

/** Returns the sums by day and group, and the averages, that pages compute from usage. */
function sumsOfUsage(responses: Responses): readonly number[] {
  return [...responses].flatMap(([address, json]) => {
    if (!/\/usage|\/margin/.test(address)) return [];
    const rows = (json as { data: Json[] }).data;
    const sums = new Map<string, [micros: number, requests: number]>();
    for (const row of rows) {
      for (const [name, by] of [
        ["all", ""],
        ["day", row["day"]],
        ["group", row["group"]],
      ] as const) {
        for (const field of ["cost_micro", "charged_micro", "bought_micro", "margin_micro"]) {
          const key = `${name} ${String(by)} ${field}`;
          const [micros, requests] = sums.get(key) ?? [0, 0];
          sums.set(key, [
            micros + Number(row[field] ?? 0),
            requests + Number(row["requests"] ?? 0),
          ]);
        }
      }
    }
    return [...sums.values()].flatMap(([micros, requests]) => [
      micros,
      ...[requests, 1, 7, 30].map((count) => Math.ceil(micros / Math.max(1, count))),
    ]);
  });
}

/** Returns the sums that the Credits page computes from transactions. */
function sumsOfCredits(responses: Responses): readonly number[] {
  return [...responses.values()].flatMap((json) => {
    const { credits = [] } = json as { readonly credits?: readonly Json[] };
    const sumOf = (kinds: RegExp): number =>
      credits
        .filter(({ kind }) => kinds.test(String(kind)))
        .reduce((sum, row) => sum + Number(row["amount_micro"]), 0);
    return [/^payment$/, /^re(?:versal|turn)$/, /^(?:credit|correction|rebuild)$/, /./].map(sumOf);
  });
}

/** Returns every form in which a page may show the responses' amounts. */
function amountsOf(responses: Responses): ReadonlySet<string> {
  const micros: number[] = [0, ...sumsOfUsage(responses), ...sumsOfCredits(responses)];
  for (const json of responses.values()) {
    eachField(json, (name, value) => {
      if (typeof value === "number" && /micro$|^price$/.test(name)) micros.push(value);
      if (typeof value === "number" && /cents$/.test(name)) micros.push(value * 10_000);
      if (typeof value === "number" && /dollars$|^(?:usage|held|limit_remaining)$/.test(name))
        micros.push(dollarsToMicros(value));
      if (name === "message" && String(value).includes("micro-credits")) {
        micros.push(...(String(value).match(/\b\d+\b/g) ?? []).map(Number));
      }
      if (/^pricing$|price$|^cost$/.test(name)) {
        // Prices are dollars of a token as text, dollars of a million as numbers, or micro-credits.
        eachField(value, (_, one) => {
          micros.push(Number(one), Math.round(Number(one) * 1e12), dollarsToMicros(Number(one)));
        });
      }
    });
  }
  return new Set(
    micros.flatMap((one) =>
      [one, -one].flatMap((m) => [formatBalance(m), formatCharge(m), formatExact(m), inError(m)]),
    ),
  );
}

/** Returns an amount as the text of an error shows it. */
function inError(micros: number): string {
  return formatExact(micros).replace(/0{1,4}$/, "");
}

/** Returns the amounts and moments on the page that no response contains. */
export async function unmatchedAmounts(
  page: Page,
  responses: Responses,
): Promise<readonly string[]> {
  const whole = await page.locator("main").innerText();
  // part of the playground's prompt
  const text = whole.replaceAll(/at most about \$[\d,.]*\d/g, "");
  const amounts = amountsOf(responses);
  const times = new Set<number>();
  for (const json of responses.values()) {
    eachField(json, (_, value) => {
      if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value))
        times.add(Date.parse(value));
      if (typeof value === "number" && value > 1e12) times.add(value);
    });
  }
  const choices = await page.locator("main button[aria-pressed]").allTextContents();
  const axis = new Set(await page.locator(".plot text.y").allTextContents());
  const moments = await page
    .locator("main time")
    .evaluateAll((nodes) => nodes.map((node) => (node as HTMLTimeElement).dateTime));
  return [
    ...(text.match(/−?\$\d+(?:,\d{3})*(?:\.\d+)?/g) ?? []).filter(
      (one) => !amounts.has(one) && !axis.has(one) && !choices.includes(one),
    ),
    ...moments.filter((one) => !times.has(Date.parse(one))),
    ...(text.match(/\bundefined\b|\bNaN\b|\[object|Invalid Date|\bin \d+ s\b/g) ?? []),
  ];
}
