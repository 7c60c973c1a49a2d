import { Option } from "commander";
import type { Command } from "commander";
import { getLedger, postCredits } from "../admin-client.ts";
import {
  microsOfDollarText,
  microsOfText,
  organizationName,
  whole,
  WrongUsage,
} from "./arguments.ts";
import type { LedgerPage } from "./records.ts";
import { does, examples, group, note, organizationId, show } from "./session.ts";
import type { Session } from "./session.ts";
import { textTable } from "../table.ts";
import type { Column } from "../table.ts";
import { dollars, money, time } from "./words.ts";

const LEDGER_PAGE_MAX = 1000;

type Amount = { readonly dollars?: number; readonly micros?: number; readonly reference: string };

/** `credits ...` and `ledger`. */
export function addMoneyCommands(program: Command): void {
  const credits = group(program, "credits", "add credits to an organisation");
  examples(
    credits,
    'credits add --local eu example --dollars 25 --reference "invoice 1"',
    'credits correct --local eu example --dollars -2.50 --reference "refund of invoice 1"',
  );
  addAdd(credits);
  addCorrect(credits);
  addLedger(program);
}

function addAdd(credits: Command): void {
  const add = withAmount(credits.command("add"))
    .description("add credits that were paid for")
    .addHelpText("after", "\nThe same reference again adds nothing, so a repeat is safe.");
  examples(
    add,
    'credits add --local eu example --dollars 25 --reference "invoice 1"',
    'credits add --local eu example --micros 1 --reference "a test"',
  );
  does(add, async (session, [org]: [string], amount: Amount) => {
    const micros = microsOf(amount);
    if (micros < 0) throw new WrongUsage("Less than nothing is a correction: credits correct.");
    await post(session, org, { micros, reference: amount.reference });
  });
}

function addCorrect(credits: Command): void {
  const correct = withAmount(credits.command("correct"))
    .description("correct a balance by a signed amount, never below what open requests hold")
    .addHelpText("after", "\nThe same reference again changes nothing, so a repeat is safe.");
  examples(
    correct,
    'credits correct --local eu example --dollars -2.50 --reference "refund of invoice 1"',
  );
  does(correct, async (session, [org]: [string], amount: Amount) => {
    await post(session, org, { micros: microsOf(amount), reference: amount.reference });
  });
}

function withAmount(command: Command): Command {
  return command
    .argument("<org>", "id or slug", organizationName)
    .addOption(
      new Option("--dollars <amount>", "dollars, at most 6 decimals")
        .argParser(microsOfDollarText)
        .conflicts("micros"),
    )
    .addOption(new Option("--micros <amount>", "millionths of a dollar").argParser(microsOfText))
    .requiredOption(
      "--reference <text>",
      "what it is for, unique for the organisation: an invoice",
    );
}

/** Both options arrive in micros. */
function microsOf(amount: Amount): number {
  const micros = amount.dollars ?? amount.micros;
  if (micros === undefined) throw new WrongUsage("Give --dollars or --micros.");
  if (micros === 0) throw new WrongUsage("The amount must not be 0.");
  return micros;
}

async function post(
  session: Session,
  org: string,
  credit: { readonly micros: number; readonly reference: string },
): Promise<void> {
  const { micros, reference } = credit;
  const orgId = await organizationId(session, org);
  const answer = await postCredits(session.admin, orgId, { amount_micro: micros, reference });
  show(session, answer, () => `Balance after it: ${money(answer.credits_micro)}`);
}

// Widths that hold what a page may bring, so that the pages of --all line up.
const LEDGER_COLUMNS: readonly Column[] = [
  { title: "seq", align: "right", least: 7 },
  { title: "time", least: 20 },
  { title: "kind", least: 9 },
  { title: "dollars", align: "right", least: 13 },
  { title: "balance", align: "right", least: 15 },
  { title: "reference or generation" },
];

type LedgerOptions = { readonly after: number; readonly limit: number; readonly all?: true };

function addLedger(program: Command): void {
  const ledger = program
    .command("ledger")
    .description("every charge, credit and correction of an organisation, oldest first")
    .argument("<org>", "id or slug", organizationName)
    .option("--after <seq>", "only rows after this one", whole(0, Number.MAX_SAFE_INTEGER), 0)
    .option("--limit <number>", "at most so many, 1 to 1000", whole(1, LEDGER_PAGE_MAX), 100)
    .option("--all", "all rows, page by page; with --json one answer a line");
  examples(ledger, "ledger --local eu example", "ledger --local eu example --all --json");
  does(ledger, async (session, [org]: [string], { after, limit, all }: LedgerOptions) => {
    const orgId = await organizationId(session, org);
    if (all === true) return printWholeLedger(session, orgId, after);
    const page = await getLedger(session.admin, orgId, { after_seq: after, limit });
    show(session, page, () => ledgerTable(page, true));
    if (page.rows.length === limit) note(`Go on with --after ${page.next_after_seq}`);
  });
}

async function printWholeLedger(session: Session, orgId: string, from: number): Promise<void> {
  let after = from;
  for (let printed = 0; ;) {
    const page = await getLedger(session.admin, orgId, {
      after_seq: after,
      limit: LEDGER_PAGE_MAX,
    });
    const isFirst = after === from;
    if (isFirst || page.rows.length > 0) show(session, page, () => ledgerTable(page, isFirst));
    printed += page.rows.length;
    note(`${printed} rows`);
    if (page.rows.length < LEDGER_PAGE_MAX) return;
    after = page.next_after_seq;
  }
}

function ledgerTable(page: LedgerPage, head: boolean): string {
  const rows = page.rows.map((row) => [
    String(row.seq),
    time(row.created_at),
    row.kind,
    dollars(row.amount_micro),
    dollars(row.balance_micro),
    row.reference ?? row.generation_id ?? "",
  ]);
  return textTable(LEDGER_COLUMNS, rows, head);
}
