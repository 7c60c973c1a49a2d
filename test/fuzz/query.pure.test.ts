import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pageQuerySchema, parseQuery } from "../../src/shared/http/parse-body.ts";
import { hasValidEscapes, routingPath } from "../../src/shared/http/routing-path.ts";
import { toDailyQuery, usageQuerySchema } from "../../src/money/wallet/routes/usage.route.ts";
import { checkRejection } from "./rejection.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { NUMBERS } from "./hostile.ts";
import { paths, queries } from "./requests.ts";

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const ORIGIN = "https://eu.test";
const DAY_MS = 86_400_000;

async function inBounds([query, number, name]: [string, string, string]): Promise<CheckResult> {
  const url = urlOf(query, number, name);
  const page = parseQuery(pageQuerySchema, url);
  const fields = parseQuery(usageQuerySchema, url);
  const usage = fields.ok ? toDailyQuery(fields.value, NOW_MS) : fields;
  if (page.ok) {
    const { limit, offset } = page.value;
    mustHold(Number.isSafeInteger(limit) && limit >= 1 && limit <= 100, "a limit", limit);
    mustHold(Number.isSafeInteger(offset) && offset >= 0, "an offset", offset);
  }
  if (usage.ok) {
    const days = (Date.parse(usage.value.to) - Date.parse(usage.value.from)) / DAY_MS;
    mustHold(days >= 0 && days < 366, "days", usage.value);
  }
  for (const one of [page, usage]) if (!one.ok) await checkRejection(one);
  return page.ok && usage.ok ? "accepted" : "refused";
}

function urlOf(query: string, number: string, name: string): string {
  return `${ORIGIN}/v1/users?${query}&${name}=${encodeURIComponent(number)}`;
}

describe("a generated query string", () => {
  it(
    `returns 400, or a page and date range within the limits, for ${runsOf("query strings")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const names = fc.constantFrom("limit", "offset", "x");
      const inputs = fc.tuple(queries, fc.constantFrom(...NUMBERS), names);
      const checking = { inputs, show: JSON.stringify, check: inBounds };
      expect(await findFaults("query strings", checking)).toBe("");
    },
  );
});

function isRoutedOnce(path: string): CheckResult {
  if (!URL.canParse(ORIGIN + path)) return "refused";
  const request = new Request(ORIGIN + path);
  const routed = routingPath(request);
  mustHold(routed.startsWith("/") && !/\/\/|.\/$/.test(routed), "slashes", routed);
  const segments = new URL(request.url).pathname.split("/");
  const isValid = segments.every((segment) => decoded(segment) !== undefined);
  mustEqual(hasValidEscapes(request.url), isValid, "escapes");
  return isValid ? "accepted" : "refused";
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

describe("a generated path", () => {
  it(
    `reaches the route of the path with merged slashes, or returns 400 for an invalid escape, for ${runsOf("paths as routed")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: paths, show: (path: string) => path, check: isRoutedOnce };
      expect(await findFaults("paths as routed", checking)).toBe("");
    },
  );
});
