import type { Command } from "commander";
import { callAdmin, postReconcile } from "../admin-client.ts";
import type { AdminAnswer } from "../admin-client.ts";
import { printable } from "../table.ts";
import { organizationName, WrongUsage } from "./arguments.ts";
import { readInput } from "./csv.ts";
import {
  setAction,
  examples,
  setFailed,
  printNote,
  organizations,
  printResult,
} from "./session.ts";
import type { Session } from "./session.ts";
import { Refused } from "./transport.ts";
import { unsavedSettlements } from "./unsaved-settlements.ts";
import { fields, table } from "./words.ts";

/** Adds `reconcile` and `settle`, which make several calls or evaluate the response. */
export function addRepairCommands(program: Command): void {
  addReconcile(program);
  addSettle(program);
}

function addReconcile(program: Command): void {
  const reconcile = program
    .command("reconcile")
    .description("compare ledger, balance, holds and database; exits with 1 if they differ")
    .argument("[org]", "ID or slug", organizationName)
    .option("--all", "compare all organizations and show those that differ");
  examples(reconcile, "reconcile --local eu example", "reconcile --local eu --all");
  setAction(reconcile, async (session, [org]: [string | undefined], { all }: { all?: true }) => {
    if ((org === undefined) === (all === undefined)) {
      throw new WrongUsage("Give an organization or --all.");
    }
    if (org === undefined) return reconcileAll(session);
    const answer = await reconcileOne(session, org, org);
    printResult(session, answer, () => {
      const summary = fields(answer, SUMMARY);
      return isEqual(answer)
        ? `${summary}\n\nNo differences.`
        : `${summary}\n\n${differenceTable([{ slug: org, ...answer }])}`;
    });
    if (!isEqual(answer)) setFailed();
  });
}

const SUMMARY = "credits_micro, held_micro, open_holds";

type Reconciliation = AdminAnswer<"POST /orgs/{id}/reconcile">;
type Compared = Reconciliation & { readonly slug: string };

/** Compares one organization and prints the progress. */
function reconcileOne({ admin }: Session, id: string, org: string): Promise<Reconciliation> {
  return postReconcile(admin, id, (rows) => printNote(`${org}: ${rows} rows read`));
}

/** Compares all organizations. One that fails doesn't stop the others. */
async function reconcileAll(session: Session): Promise<void> {
  const compared: (Compared & { readonly id: string })[] = [];
  let refused = 0;
  for await (const { id, slug } of organizations(session)) {
    try {
      compared.push({ id, slug, ...(await reconcileOne(session, id, slug)) });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refused += 1;
      printNote(
        `${slug}: ${printable(error.message)} (status ${error.status}, ${error.requestId})`,
      );
    }
    const done = compared.length + refused;
    if (done % 50 === 0) printNote(`${done} organizations`);
  }
  const different = compared.filter((one) => !isEqual(one));
  const { organizations: lost } = await callAdmin(session.admin, "GET /lost-organizations");
  const summary = `${compared.length} organizations compared, ${different.length} with differences, ${refused} unavailable.`;
  printResult(session, { organizations: compared, lost_organizations: lost }, () =>
    [
      ...(different.length === 0 ? [] : [differenceTable(different)]),
      ...(lost.length === 0 ? [] : [table(lost, LOST), LOST_WORDS]),
      summary,
    ].join("\n\n"),
  );
  if (different.length > 0 || refused > 0 || lost.length > 0) setFailed();
}

const LOST = "id lost organization, >balance_micro dollars, updated_at updated";
const LOST_WORDS =
  "The database has lost these organizations. To restore one: orgs create --restore <id>.";

function isEqual({ differences }: Reconciliation): boolean {
  return differences.length === 0;
}

function differenceTable(compared: readonly Compared[]): string {
  return table(
    compared.flatMap(({ slug, differences }) => differences.map((one) => ({ slug, ...one }))),
    "slug organization, what, >expected, >found",
  );
}

function addSettle(program: Command): void {
  const settle = program
    .command("settle")
    .description("post the charges from settlement_unsaved log lines (a retry charges nothing)")
    .option("--file <path>", "the log (default: stdin); other lines are ignored");
  examples(settle, "settle --local eu --file unsaved.log", "settle --local eu < unsaved.log");
  setAction(settle, async (session, _: [], { file }: { file?: string }) => {
    const unsaved = unsavedSettlements(readInput(file));
    const posted: ({ readonly request_id: string } & AdminAnswer<"POST /orgs/{id}/settle">)[] = [];
    for (const { orgId, settlement } of unsaved) {
      const { request_id } = settlement;
      try {
        const given = { ids: [orgId], body: settlement };
        const answer = await callAdmin(session.admin, "POST /orgs/{id}/settle", given);
        posted.push({ request_id, ...answer });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        printNote(`${printable(`${request_id}: ${error.message}`)} (status ${error.status})`);
        setFailed();
      }
    }
    printResult(session, { settlements: posted }, () =>
      table(posted, "request_id request, result, >charged_micro, >shortfall_micro"),
    );
  });
}
