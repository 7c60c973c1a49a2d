import type { Command } from "commander";
import { isLargeDifference } from "../../src/operator/bill-difference.ts";
import { callAdmin, pagesOf } from "../admin-client.ts";
import type { AdminAnswer } from "../admin-client.ts";
import { day, microsOfDollarText, WrongUsage } from "./arguments.ts";
import { csvLines, numberIn, readInput } from "./csv.ts";
import { setAction, examples, setFailed, printNote, printResult } from "./session.ts";
import type { Session } from "./session.ts";
import { dollars as dollarText, table } from "./words.ts";
import type { JsonRecord } from "./words.ts";

type Margin = AdminAnswer<"GET /margin">;
type Group = Margin["data"][number];
type MarginSums = {
  readonly groups: readonly Group[];
  readonly missing: readonly string[];
  readonly isPaged: boolean;
};
type Days = { readonly from: string; readonly to: string; readonly by?: string };
type Bill = { readonly provider: string; readonly day: string; readonly dollars: number };

const FIGURES =
  ">requests, >charged_micro dollars, >bought_micro dollars, >margin_micro dollars, >unknown_requests unknown";

/**
 * Adds `margin`, `costs import` and `rerate`, which read several pages or a file, or need
 * confirmation.
 */
export function addCostCommands(program: Command): void {
  addMargin(program);
  addImport(program);
  addRerate(program);
}

function addMargin(program: Command): void {
  const margin = program
    .command("margin")
    .description("show charges and provider costs by day and a second field")
    .requiredOption("--from <day>", "first day, YYYY-MM-DD in UTC", day)
    .requiredOption("--to <day>", "last day, inclusive", day)
    .option("--by <what>", "provider, model or organization", "provider");
  examples(margin, "margin --local eu --from 2026-11-01 --to 2026-11-30 --by model");
  setAction(margin, async (session, _: [], options: Days) => {
    const { groups, missing } = await readMargin(session, options);
    printResult(session, { data: groups, missing }, () =>
      table(groups.map(withMargin), `day, group ${options.by ?? "provider"}, ${FIGURES}`),
    );
    noteMissing(missing);
  });
}

/** Prints the organizations that the sums lack, and sets exit code 1. */
function noteMissing(missing: readonly string[]): void {
  if (missing.length === 0) return;
  printNote(`Incomplete: the wallets of these organizations can't be read: ${missing.join(", ")}`);
  setFailed();
}

function withMargin(group: Group): JsonRecord {
  return { ...group, margin_micro: group.charged_micro - group.bought_micro };
}

/** Returns the sum of all pages of organizations, and whether there were several pages. */
async function readMargin({ admin }: Session, { from, to, by }: Days): Promise<MarginSums> {
  const sums = new Map<string, Group>();
  const missing: string[] = [];
  let pages = 0;
  const call = { method: "GET", path: "/margin", query: { from, to, by } } as const;
  for await (const page of pagesOf<Margin>(admin, call)) {
    pages += 1;
    for (const one of page.data) {
      const name = `${one.day} ${one.group}`;
      const sum = sums.get(name);
      sums.set(name, sum === undefined ? one : addGroups(sum, one));
    }
    missing.push(...page.missing);
  }
  return { groups: [...sums.values()], missing, isPaged: pages > 1 };
}

function addGroups(one: Group, other: Group): Group {
  return {
    ...one,
    requests: one.requests + other.requests,
    charged_micro: one.charged_micro + other.charged_micro,
    bought_micro: one.bought_micro + other.bought_micro,
    unknown_requests: one.unknown_requests + other.unknown_requests,
  };
}

function addImport(program: Command): void {
  const costs = program
    .command("costs")
    .description("costs that providers bill")
    .helpCommand(false);
  const command = costs
    .command("import")
    .description("import a provider's daily bill; exits with 1 if a day differs by more than 2 %")
    .option("--file <path>", "the bill (default: stdin)")
    .addHelpText("after", "\nColumns: provider, day, dollars. One line per day.");
  examples(costs, "costs import --local eu --file bill.csv");
  examples(command, "costs import --local eu --file bill.csv");
  setAction(command, async (session, _: [], { file }: { file?: string }) => {
    const rows = csvLines(readInput(file), ["provider", "day", "dollars"]).map((line): Bill => {
      const { provider, day: of } = line.of;
      const dollars = numberIn(line, "dollars");
      if (provider === undefined || of === undefined || dollars === undefined) {
        throw new WrongUsage(`Line ${line.line} must have provider, day and dollars.`);
      }
      return { provider, day: of, dollars };
    });
    await callAdmin(session.admin, "POST /costs", { body: { rows } });
    const days = rows.map(({ day: of }) => of).toSorted();
    const span = { from: days[0] ?? "", to: days.at(-1) ?? "" };
    const { groups, missing, isPaged } = await readMargin(session, span);
    const compared = rows.map((bill) => compareBills(bill, groups));
    // The region can't add up several pages, so the sums are sent to the region.
    const summed = rows.map((bill, at) =>
      Object.assign({ counted_micro: compared[at]?.bought_micro ?? 0 }, bill),
    );
    if (isPaged && missing.length === 0) {
      await callAdmin(session.admin, "POST /costs", { body: { rows: summed } });
    }
    printResult(session, { costs: compared }, () =>
      table(compared, "provider, day, >billed_micro dollars, >bought_micro dollars, >percent"),
    );
    noteMissing(missing);
    if (compared.some((one) => isLargeDifference(one.billed_micro, one.bought_micro))) setFailed();
  });
}

function compareBills({ provider, day: of, dollars }: Bill, counted: readonly Group[]) {
  const billed = Math.round(dollars * 1_000_000);
  const bought = counted.find((one) => one.group === provider && one.day === of)?.bought_micro ?? 0;
  const percent = Math.round(((billed - bought) * 10_000) / Math.max(billed, bought, 1)) / 100;
  return { provider, day: of, billed_micro: billed, bought_micro: bought, percent };
}

type RerateOptions = {
  readonly id: string;
  readonly model: string;
  readonly from: string;
  readonly to: string;
  readonly input: string;
  readonly output?: string;
  readonly cached?: string;
  readonly cacheWrite?: string;
  readonly organization?: string;
  readonly yes?: true;
  readonly atMost?: number;
};
type Rerated = AdminAnswer<"POST /rerate">;
type RerateSum = Pick<Rerated, "organizations" | "total_micro">;

function addRerate(program: Command): void {
  const rerate = program
    .command("rerate")
    .description(
      "credit the difference if a model's requests would have cost less at another price (only shown without --yes)",
    )
    .requiredOption(
      "--id <text>",
      "the correction's ID: each organization is credited only once for it",
    )
    .requiredOption("--model <id>", "whose requests")
    .requiredOption("--from <time>", "the start of the period, in UTC")
    .requiredOption("--to <time>", "the end of the period, exclusive, in UTC")
    .requiredOption("--input <dollars>", "the other price of input, per million tokens")
    .option("--output <dollars>", "the price of output, per million tokens")
    .option("--cached <dollars>", "the price of cached input, per million tokens")
    .option("--cache-write <dollars>", "the price of cache writes, per million tokens")
    .option("--organization <id>", "only this organization, by ID or slug")
    .option("--yes", "post the credits")
    .option(
      "--at-most <dollars>",
      "with --yes: post nothing if the total is higher",
      microsOfDollarText,
    );
  examples(
    rerate,
    "rerate --local eu --id slip-1 --model openai/gpt-5-nano --from 2026-11-20 --to 2026-11-21 --input 0.05 --output 0.4",
  );
  setAction(rerate, async (session, _: [], options: RerateOptions) => {
    const { id, model, from, to, organization, input, output, cached, cacheWrite } = options;
    const given = Object.entries({ input, output, cached, cache_write: cacheWrite });
    const price = Object.fromEntries(
      given.filter(([, text]) => text !== undefined).map(([name, text]) => [name, Number(text)]),
    );
    const correction = {
      id,
      model,
      from,
      to,
      price,
      ...(organization !== undefined && { organization }),
    };
    const preview = await readRerate(session, { ...correction, dry_run: true });
    await noteEarlier(session, correction, preview.organizations);
    const isCredited = options.yes === true;
    if (isCredited) requireTotalAtMost(preview.total_micro, options.atMost);
    const answer = isCredited
      ? await readRerate(session, { ...correction, dry_run: false })
      : preview;
    printResult(session, answer, () =>
      table(answer.organizations, "organization, >requests, >credit_micro dollars, result"),
    );
    if (isCredited) return;
    const total = dollarText(preview.total_micro);
    printNote(`Nothing was credited. To credit it, add --yes --at-most ${total}.`);
  });
}

/** Maximum number of organizations for which to look up earlier corrections. */
const EARLIER_MAX = 100;

/**
 * Warns about other corrections since the period began, because they can cover the same requests.
 */
async function noteEarlier(
  { admin }: Session,
  { id, from }: { readonly id: string; readonly from: string },
  organizations: Rerated["organizations"],
): Promise<void> {
  for (const { organization } of organizations.slice(0, EARLIER_MAX)) {
    const query = { type: "balance.credited", from, limit: 100 } as const;
    const given = { ids: [organization], query };
    const { events } = await callAdmin(admin, "GET /orgs/{id}/events", given);
    const others = events
      .map(({ data }) => (data["reference"] as string | undefined) ?? "")
      .filter((reference) => reference.startsWith("rerate:") && reference !== `rerate:${id}`);
    if (others.length === 0) continue;
    const named = [...new Set(others)].map((reference) => reference.slice("rerate:".length));
    printNote(
      `Warning: ${organization} has corrections since then: ${named.join(", ")}. If they cover the same requests, this credits them twice.`,
    );
  }
}

/** Throws `WrongUsage` unless `atMost` covers the total. */
function requireTotalAtMost(total: number, atMost: number | undefined): void {
  if (atMost !== undefined && total <= atMost) return;
  const words = `This credits ${dollarText(total)} dollars in total. Nothing was credited.`;
  throw new WrongUsage(`${words} Add --at-most ${dollarText(total)} to confirm the total.`);
}

/** Returns all pages of a correction as one response. */
async function readRerate({ admin }: Session, body: object): Promise<RerateSum> {
  const sum = { organizations: [] as Rerated["organizations"][number][], total_micro: 0 };
  for await (const page of pagesOf<Rerated>(admin, { method: "POST", path: "/rerate", body })) {
    sum.organizations.push(...page.organizations);
    sum.total_micro += page.total_micro;
  }
  return sum;
}
