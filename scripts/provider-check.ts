// npm run provider-check: compares a provider's live API with its adapter, using your own key.
// Exits with 0 on success, 1 if a check fails or a variable is missing, or 2 for wrong usage.
import { Option } from "commander";
import type { Command } from "commander";
import { programOf, runProgram } from "./program.ts";
import { runChecks } from "./provider-check/checks.ts";
import type { Finding } from "./provider-check/checks.ts";
import { diagnose } from "./provider-check/diagnosis.ts";
import type { Diagnosis } from "./provider-check/diagnosis.ts";
import { recordFetch } from "./provider-check/recorded-fetch.ts";
import { subjectOf } from "./provider-check/subject.ts";
import type { Missing, Subject } from "./provider-check/subject.ts";
import { REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";
import { printable } from "./table.ts";

const FAILED = 1;

type Options = {
  readonly region?: RegionName;
  readonly model?: string;
  readonly embeddings?: string;
  readonly raw?: true;
  readonly json?: true;
};

/** Runs the checks, and returns the exit code. */
export function main(given: readonly string[]): Promise<number> {
  const program = providerCheck().parse(given, { from: "user" });
  return checkProvider(program.args[0] ?? "", program.opts<Options>());
}

async function checkProvider(provider: string, options: Options): Promise<number> {
  const subject = subjectOf(provider, options, process.env);
  if ("missing" in subject) {
    process.stderr.write(`${wordsOfMissing(provider, subject)}\n`);
    return FAILED;
  }
  const { chat, embeddings, region } = subject;
  if (chat === null && embeddings === null) {
    process.stderr.write(
      `error: no model has a route to ${printable(provider)}. Add one to MODELS.\n`,
    );
    return FAILED;
  }
  const models = [chat?.model, embeddings?.model].filter((id) => id !== undefined).join(", ");
  process.stderr.write(`Calling ${provider} as region ${region}: ${models}\n`);
  const recorder = recordFetch(subject.secrets);
  const findings: Finding[] = [];
  const tell = (finding: Finding): void => {
    findings.push(finding);
    if (options.json !== true) say(finding, options.raw === true);
  };
  if (subject.unsold !== null) {
    tell({ name: "region", note: "", problem: subject.unsold, raw: [] });
  }
  for await (const finding of runChecks(subject, recorder)) tell(finding);
  recorder.restore();
  const diagnosis = await diagnosisOf(subject, findings);
  const failed = findings.filter((finding) => finding.problem !== null).length;
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ provider, region, findings, diagnosis })}\n`);
  } else {
    const wrong = diagnosis && `\nCause: the ${diagnosis.wrong}. ${diagnosis.say}\n`;
    if (wrong !== null) process.stdout.write(recorder.clean(wrong));
    process.stdout.write(`\n${findings.length - failed} passed, ${failed} failed\n`);
  }
  return failed === 0 ? 0 : FAILED;
}

/**
 * Finds out whether the key or the request caused a rejection. Returns null if nothing was rejected
 * or the provider's places are unknown.
 */
function diagnosisOf(
  { places }: Subject,
  findings: readonly Finding[],
): Promise<Diagnosis | null> | null {
  const isRefused = findings.some(({ problem }) => problem?.includes('"disabled"') === true);
  return places === null || !isRefused ? null : diagnose(places.key, places.places);
}

function say({ name, note, problem, raw }: Finding, always: boolean): void {
  const head = `${problem === null ? "pass" : "FAIL"}  ${name.padEnd(12)} ${problem ?? note}`;
  const lines =
    problem === null && !always ? [head] : [head, ...raw.map((line) => `      ${line}`)];
  process.stdout.write(`${lines.map(printable).join("\n")}\n`);
}

function wordsOfMissing(provider: string, { missing, known }: Missing): string {
  if (missing.length === 0) {
    return `error: no provider "${printable(provider)}". Known: ${known.join(", ")}, and the IDs in your PROVIDERS.`;
  }
  return `error: ${provider} needs ${missing.join(" and ")} in the environment, with the region's value.`;
}

function providerCheck(): Command {
  return programOf(
    "provider-check",
    "Calls a provider with your own key (chat, stream, tools, JSON, embeddings, errors), and checks\nthat the gateway's adapter understands each response. Costs a fraction of a cent.",
  )
    .argument("<provider>", "its ID, such as openai, anthropic or bedrock")
    .addOption(
      new Option("--region <region>", "the region whose host is called").choices(REGION_NAMES),
    )
    .option("--model <id>", "a chat model of the catalog; by default the provider's cheapest")
    .option(
      "--embeddings <id>",
      "an embedding model of the catalog; by default the provider's cheapest",
    )
    .option("--raw", "print the traffic of all checks, not only of failed ones")
    .option("--json", "print the findings as JSON")
    .addHelpText(
      "after",
      `
Environment: the provider's variables, with the same names as its secrets (OPENAI_API_KEY, ...).
For your own providers, also PROVIDERS and MODELS. Keys are never printed.
workers-ai has no key. CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_API_TOKEN replace its binding.

Exits with 0 on success, 1 if a check fails or a variable is missing, or 2 for wrong usage.

Examples:
  OPENAI_API_KEY=... npm run -s provider-check -- openai
  npm run -s provider-check -- bedrock --region eu --model anthropic/claude-sonnet-5`,
    );
}

if (import.meta.main) await runProgram(main);
