import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { METRICS } from "../../src/events/metrics/series.ts";
import type { MetricDefinition } from "../../src/events/metrics/series.ts";
import { readPage, ROOT } from "./pages.ts";

const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");
const RULES = read("docs/operate/prometheus-rules.yml");
const DASHBOARD = read("docs/operate/grafana-dashboard.json");
const ALERTS = readPage("docs/alerts.md");

/** Returns the names of metrics in a text. A histogram's series have the histogram's name. */
function metricsIn(text: string): string[] {
  const names = [...text.matchAll(/\bturnpike_[a-z_]+/g)].map(([name]) => name);
  return [...new Set(names.map((name) => name.replace(/_(?:bucket|sum|count)$/, "")))].toSorted();
}

const known = Object.values<MetricDefinition>(METRICS).map(({ name }) => name);

it("the alert rules and the dashboard use every metric, and only existing metrics", () => {
  expect(metricsIn(RULES).filter((name) => !known.includes(name))).toEqual([]);
  expect(metricsIn(DASHBOARD).filter((name) => !known.includes(name))).toEqual([]);
  expect(metricsIn(RULES + DASHBOARD)).toEqual(known.toSorted());
});

it("the metrics page lists exactly the existing metrics", () => {
  const page = metricsIn(readPage("docs/metrics.md")).filter((name) => name !== "turnpike_eu");
  expect(page).toEqual(known.toSorted());
});

it("the alert rules use quantiles only of histograms, and rates only of counters", () => {
  const exprs = [
    ...[...RULES.matchAll(/expr: (.+)/g)].map(([, expr = ""]) => expr),
    ...[...DASHBOARD.matchAll(/"expr": "((?:[^"\\]|\\.)*)"/g)].map(([, expr = ""]) => expr),
  ];
  expect(exprs.length).toBeGreaterThan(30);
  const wrong = Object.values<MetricDefinition>(METRICS).flatMap(({ name, type }) => {
    const use = new RegExp(String.raw`(\w+)\(${name}(_bucket)?\b`, "g");
    const uses = exprs.flatMap((expr) => expr.match(use) ?? []);
    const right = {
      gauge: /^(?!rate|increase)/,
      counter: /^(?:rate|increase)/,
      histogram: /^rate.*_bucket$/,
    };
    return uses.filter((one) => !right[type].test(one));
  });
  expect(wrong).toEqual([]);
});

it("every alert rule has a severity, a summary and a documented action", () => {
  const rules = RULES.split(/^ {6}- alert: /m).slice(1);
  for (const rule of rules) {
    expect(rule).toMatch(/^ {8}expr: \S/m);
    expect(rule).toMatch(/^ {8}labels: \{ severity: (?:page|ticket) \}$/m);
    expect(rule).toMatch(/^ {8}annotations:\s+\{\s*summary:\s*"[^"]+"\s*,?\s*\}$/m);
  }
  const named = rules.map((rule) => rule.split("\n")[0] ?? "");
  const rows = [...ALERTS.matchAll(/^\| `(Turnpike\w+)` /gm)].map(([, name = ""]) => name);
  expect(rows.toSorted()).toEqual(named.toSorted());
});

it("the documentation has an action for each alert that the gateway can log, and for no other alert", () => {
  const sources = readdirSync(path.join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("console/browser/"))
    .map((file) => read(path.join("src", file)));
  const logged = sources.flatMap((source) =>
    [...source.matchAll(/logAlert\(\s*"(\w+)"/g)].map(([, name = ""]) => name),
  );
  const part = ALERTS.slice(ALERTS.indexOf("## From the log"));
  const cells = [...part.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = ""]) => cell);
  const rows = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
  // The outbox builds the alert's name from a message's state.
  const states = ["outbox_dead", "outbox_parked"];
  const expected = [...new Set([...logged, ...states])].toSorted();
  expect(rows.filter((name) => name !== "alert").toSorted()).toEqual(expected);
});

it.each([
  "An invalid provider key",
  "An overloaded database",
  "An overloaded wallet",
  "An unavailable region",
  "A leaked operator's token",
  "A leaked KEY_SECRET",
])("the runbook has a section for every alert: %s", (title) => {
  const runbooks = readPage("docs/runbooks.md");
  const section = runbooks.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? "";
  const parts = ["**Symptoms**", "\n1. ", "**Resolved when**"];
  for (const part of parts) expect(section).toContain(part);
});
