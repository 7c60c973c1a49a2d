import { expect } from "vitest";
import { check } from "../../../scripts/deploy/check.ts";
import type { CheckOptions } from "../../../scripts/deploy/check.ts";
import { jsonOf, wordsOf } from "../../../scripts/deploy/report.ts";
import { startProgram } from "./program.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";

/** A secret that the tests put wherever one could be seen. */
export const CANARY = "canary-of-a-secret-that-nobody-may-see";

type Ran = { readonly code: number | null; readonly said: string };

/** Runs the program to its end. No secret may be in anything that it says. */
export async function run(
  given: readonly string[],
  variables: Record<string, string> = {},
): Promise<Ran> {
  const inherited = {
    TURNPIKE_ADMIN_TOKEN: "",
    TURNPIKE_URL: "",
    CLOUDFLARE_API_TOKEN: "",
  };
  const program = startProgram(["scripts/deploy-check.ts", ...given], {
    ...inherited,
    ...variables,
  });
  const code = await program.ended;
  const said = program.output();
  for (const secret of [CANARY, ADMIN_TOKEN]) expect(said).not.toContain(secret);
  return { code, said };
}

/** What it says of the EU, in this process. Without `names` Cloudflare is asked. */
export async function checked(file: string, more: Partial<CheckOptions> = {}): Promise<Said> {
  const today = Date.now();
  const options = { env: "eu", file, running: null, isAccepted: false, today, ...more } as const;
  const report = await check(options);
  for (const said of [wordsOf(report), jsonOf(report)]) expect(said).not.toContain(CANARY);
  return JSON.parse(jsonOf(report)) as Said;
}

/** The report as JSON. */
export type Said = {
  readonly ready: boolean;
  readonly findings: readonly { level: string; where: string; problem: string; remedy: string }[];
  readonly aliases: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
};

/** The aliases that would change, each with its level and both models. */
export function changed({ findings }: Said): string[] {
  return findings
    .filter(({ problem }) => problem.includes("and would mean"))
    .map(({ level, where, problem }) => `${level} ${where} ${problem.replace(/:.*/, "")}`);
}

/** What is said of secrets that are not set. */
export function unset({ findings }: Said): Said["findings"] {
  return findings.filter(({ problem }) => problem === "is not set");
}
