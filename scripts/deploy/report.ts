import type { RegionName } from "../region-names.ts";
import { printable, textTable } from "../table.ts";
import type { Finding } from "./finding.ts";

/** The result of a check. */
export type Report = {
  readonly env: string;
  /** The region, or null if the configuration can't be read. */
  readonly region: RegionName | null;
  readonly findings: readonly Finding[];
  /** The model of each alias after the deploy. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Provider secrets that are assumed to be set. */
  readonly assumed: readonly string[];
};

export function isReady({ findings }: Report): boolean {
  return findings.every(({ level }) => level !== "error");
}

export function jsonOf(report: Report): string {
  const { env, region, ...more } = report;
  const aliases = Object.fromEntries(report.aliases);
  return JSON.stringify({ env, region, ready: isReady(report), ...more, aliases });
}

/** Returns the report as text. Errors come first, each with a remedy. */
export function wordsOf(report: Report): string {
  const { env, findings, aliases, assumed } = report;
  const of = (level: Finding["level"]) => findings.filter((one) => one.level === level);
  const [errors, warnings, notes] = [of("error"), of("warning"), of("note")];
  const lines = [...errors, ...warnings, ...notes].map(
    ({ level, where, problem, remedy }) =>
      `${level.toUpperCase().padEnd(8)} ${where} ${problem}.\n         -> ${remedy}`,
  );
  const meaning =
    aliases.size === 0
      ? "No alias can be resolved."
      : `Models of the aliases after this deploy:\n${textTable(
          [{ title: "" }, { title: "" }, { title: "" }],
          [...aliases].map(([alias, id]) => ["", alias, id]),
          false,
        )}`;
  const assuming =
    assumed.length === 0
      ? []
      : [`(This assumes that these secrets are set: ${assumed.join(", ")})`];
  const counts = `${countText(errors, "error")}, ${countText(warnings, "warning")}`;
  const verdict = isReady(report)
    ? `${counts}. Next: npx wrangler deploy --env ${env}`
    : `${counts}. Do not deploy ${env} yet.`;
  return [...lines, [meaning, ...assuming].join("\n"), verdict]
    .map((part) => part.split("\n").map(printable).join("\n"))
    .join("\n\n");
}

function countText(findings: readonly Finding[], word: string): string {
  return `${findings.length} ${word}${findings.length === 1 ? "" : "s"}`;
}
