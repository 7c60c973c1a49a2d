import { expect } from "vitest";
import { check } from "../../../scripts/deploy/check.ts";
import type { CheckOptions } from "../../../scripts/deploy/check.ts";
import { jsonOf, wordsOf } from "../../../scripts/deploy/report.ts";
import { main } from "../../../scripts/deploy-check.ts";
import { endOf } from "../../../scripts/program.ts";
import { runInProcess } from "./in-process.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";

/** A secret that tests put wherever it could leak. */
export const CANARY = "canary-of-a-secret-that-nobody-may-see";

type Ran = { readonly code: number | null; readonly output: string };

/** Runs the program in this process. Fails if its output contains the secret. */
export async function run(
  args: readonly string[],
  variables: Record<string, string> = {},
): Promise<Ran> {
  const { code, out, err } = await runInProcess(() => endOf(args, main), {
    CLOUDFLARE_API_TOKEN: "",
    ...variables,
  });
  const output = out + err;
  for (const secret of [CANARY, ADMIN_TOKEN]) expect(output).not.toContain(secret);
  return { code, output };
}

/** Checks the EU in this process. Reads secrets from Cloudflare unless `names` is given. */
export async function checked(
  file: string,
  more: Partial<CheckOptions> = {},
): Promise<DeployReport> {
  const today = Date.now();
  const options = { env: "eu", file, running: null, isAccepted: false, today, ...more } as const;
  const report = await check(options);
  for (const output of [wordsOf(report), jsonOf(report)]) expect(output).not.toContain(CANARY);
  return JSON.parse(jsonOf(report)) as DeployReport;
}

/** The report as JSON. */
export type DeployReport = {
  readonly ready: boolean;
  readonly findings: readonly { level: string; where: string; problem: string; remedy: string }[];
  readonly aliases: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
};

/** Returns aliases that would change, with the level and both models. */
export function changed({ findings }: DeployReport): string[] {
  return findings
    .filter(({ problem }) => problem.includes("and would mean"))
    .map(({ level, where, problem }) => `${level} ${where} ${problem.replace(/:.*/, "")}`);
}

/** Returns findings about secrets that aren't set. */
export function unset({ findings }: DeployReport): DeployReport["findings"] {
  return findings.filter(({ problem }) => problem === "is not set");
}
