import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import {
  buildFocusCreditRows,
  formatFocusCsv,
  FOCUS_CSV_HEADER,
  buildFocusUsageRows,
} from "../../src/money/wallet/exports/focus.ts";
import { micros } from "../../src/shared/money.ts";

/**
 * A Python with `focus-validator` (PyPI, 2.2.1), in FOCUS_PYTHON. Requires Python 3.12 and
 * `pyarrow` below 21.
 */
const PYTHON = process.env["FOCUS_PYTHON"];
const CRITERIA =
  "USAGE_MEASUREMENT_SUPPORTED,PUBLIC_PRICE_LIST_SUPPORTED,UNIT_PRICING_SUPPORTED,SUB_ACCOUNT_SUPPORTED,TAGGING_SUPPORTED";
/** Fails for every row without an invoice, although its alternative InvoiceId-C-004-C holds. */
const CONTRADICTED = ["InvoiceId-C-005-C"];

const AT = { orgId: "e58bc0f6-4d3c-4d4c-9c4f-0e6b7b3f4a55", day: "2026-11-22" };
const GROUP = {
  keyId: "key_0VbifKtdwpcATh1powctM6qs",
  provider: "openai",
  region: "eu",
  requests: 3,
  lines: { input: 501, cached: 33, output: 20, image: 1 },
};
const PRICE = { input: 1_250_000, cached: 125_000, cacheWrite: 1_250_000, output: 10_000_000 };

function file(): string {
  const money = { costMicro: micros(41_000), chargedMicro: micros(40_000) };
  const credit = (amount: number, reference: string, tax: number | null = null) =>
    buildFocusCreditRows(AT, { seq: 1, amountMicro: micros(amount), reference }, tax);
  return (
    FOCUS_CSV_HEADER +
    formatFocusCsv([
      ...buildFocusUsageRows(AT, {
        ...GROUP,
        ...money,
        model: "openai/gpt-5.6",
        price: { ...PRICE, units: { image: 40_000_000_000 } },
        tags: JSON.stringify({ team: 'a,"b' }),
      }),
      ...buildFocusUsageRows(AT, { ...GROUP, ...money, model: "acme/one", price: PRICE, tags: "" }),
      ...credit(10_000_000, "stripe:pi_1", 1_900_000),
      ...credit(-5_000_000, "owed:1:2"),
      ...credit(3_000_000, "gift"),
      ...credit(-500, "correction"),
    ])
  );
}

it.skipIf(PYTHON === undefined)(
  `the FOCUS export passes the public FOCUS validator${PYTHON === undefined ? " (skipped: FOCUS_PYTHON isn't set)" : ""}`,
  () => {
    const folder = mkdtempSync(path.join(tmpdir(), "turnpike-focus-"));
    const [data, report] = [path.join(folder, "focus.csv"), path.join(folder, "report.xml")];
    try {
      writeFileSync(data, file());
      const code =
        "import focus_validator, os; print(os.path.dirname(os.path.dirname(focus_validator.__file__)))";
      // it reads files next to itself
      const cwd = execFileSync(String(PYTHON), ["-c", code], { encoding: "utf8" }).trim();
      const validator = path.join(path.dirname(String(PYTHON)), "focus-validator");
      const version = ["--validate-version", "1.2", "--block-download"];
      const output = ["--output-type", "unittest", "--output-destination", report];
      execFileSync(
        validator,
        ["--data-file", data, ...version, "--applicability-criteria", CRITERIA, ...output],
        { cwd, stdio: "pipe" },
      );
      const failures = readFileSync(report, "utf8").matchAll(/<failure name="([^"]+)"/g);
      expect([...failures].map(([, name]) => name)).toEqual(CONTRADICTED);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  120_000,
);
