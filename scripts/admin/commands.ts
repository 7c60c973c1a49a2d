import { findAnywhere, wholeUsage } from "../admin-client.ts";
import { confirmClosing, confirmLargeCredits, confirmRevocation } from "./confirmations.ts";
import type { AdminClient, Call } from "./transport.ts";
import { eventsWords, foundWords, purchasesWords, usageWords } from "./list-words.ts";
import { table } from "./words.ts";
import type { JsonRecord } from "./words.ts";

/** The fields of a command. */
export type CommandFields = {
  /** The query and body fields, by default all. `<field>` is an argument, others are flags. */
  readonly fieldNames?: readonly string[];
  /** Path fields that are flags. */
  readonly flags?: readonly string[];
  /** Help texts that differ from `HELP`. */
  readonly help?: Readonly<Record<string, string>>;
};

/** The differences between a command and the operation from which it is derived. */
export type Row = CommandFields & {
  /** The operation, with its path below `/admin/v1`. */
  readonly operation: `${Call["method"]} /${string}`;
  /**
   * The command's words. By default, the path's noun and a verb for the method, such as `keys
   * list`.
   */
  readonly command?: string;
  /** The summary. By default, the operation's. */
  readonly summary?: string;
  /** Text below the help. */
  readonly helpText?: string;
  /** Constant fields of the body. */
  readonly constantBody?: JsonRecord;
  /** Returns a problem with the body, or null. */
  readonly problemOf?: (body: JsonRecord) => string | null;
  /** Returns the effect that the user must confirm with `--yes`, or null. */
  readonly confirmationOf?: (admin: AdminClient, call: Call) => Promise<string | null>;
  /** Makes the calls of a command that needs several. */
  readonly makeCalls?: (admin: AdminClient, call: Call) => Promise<JsonRecord>;
  /** The part of each example after the path's arguments. */
  readonly examples?: readonly string[];
  /** The columns of a list (`table`) or the fields of a record (`fields`), by default all. */
  readonly columns?: string;
  /** Column widths of a list that is printed page by page. */
  readonly widths?: readonly number[];
  /** Text to print, with `{field}` for each field of the response. */
  readonly outputText?: string | ((answer: JsonRecord) => string);
  /** A note on stderr. `{org}` is the given organization, `{changes}` the sent fields. */
  readonly note?: string;
};

const ORG = "/orgs/{id}";
const MEMBER = `${ORG}/members/{member_id}` as const;
const ONE_KEY = `${ORG}/keys/{key_id}` as const;
const WEBHOOK = `${ORG}/webhooks/{webhook_id}` as const;
const ORGANIZATION =
  "id, slug, name, region, status, rpm_limit, price_list, is_personal, created_at, *";
const KEY =
  "id, name, prefix, region, scope, rpm_limit, revoked, created_at, last_used_at, member_id, *";
const MEMBERS = "email, role, created_at since, id";
const BALANCE = "New balance: {credits_micro}";

/** Returns a command that changes an organization. */
function organizationChange(
  verb: string,
  summary: string,
  more: Pick<Row, "fieldNames" | "help" | "examples" | "constantBody">,
): Row {
  const shown = { summary, columns: ORGANIZATION, note: "{slug}: {changes}." };
  return { command: `orgs ${verb}`, operation: `PATCH ${ORG}`, ...shown, ...more };
}

/** Operations with a hand-written command, such as in repair-commands.ts. */
export const BY_HAND = [
  `POST ${ORG}/reconcile`,
  `POST ${ORG}/settle`,
  "GET /health",
  "POST /prices",
  "GET /margin",
  "POST /costs",
  "POST /rerate",
] as const;

/** Commands that differ from their operations. Operations without a row also have a command. */
export const ROWS: readonly Row[] = [
  {
    operation: "POST /orgs",
    summary: "create an organization with its owner and first key, which is shown only once",
    help: { rpm_limit: "requests per minute of the first key" },
    examples: [
      "--name Example --slug example --owner-email owner@example.com",
      "--name Shop --slug shop --owner-email it@shop.example --key-scope global --json",
      "--name Shop --slug shop --owner-email it@shop.example --restore 0b5f2f5c-0000-4000-8000-000000000000",
    ],
    outputText: `organization  {organization.id}
slug          {organization.slug}
owner         {member.email} ({member.id})
key id        {key.id}
key           {key.key}`,
  },
  {
    operation: "GET /orgs",
    examples: ["", "--balance", "--limit 100 --offset 100 --json"],
    outputText: ({ organizations }) => {
      const listed = organizations as readonly JsonRecord[];
      const hasBalances = listed.some((one) => "credits_micro" in one);
      const balanceColumns = hasBalances ? ">credits_micro dollars, >open_holds, " : "";
      return table(listed, `slug, name, status, ${balanceColumns}id`);
    },
  },
  {
    operation: "GET /find",
    command: "find",
    fieldNames: ["<q>"],
    help: { q: "a whole ID, prefix, address or reference, or a part of a customer's name" },
    examples: ["owner@example.com", "req_0VbYLVeiej0Be1V2ivdE8L5o --json"],
    makeCalls: findAnywhere,
    outputText: foundWords,
  },
  { operation: `GET ${ORG}`, columns: ORGANIZATION },
  organizationChange("rename", "change an organization's name or slug", {
    fieldNames: ["name", "slug"],
    help: { name: "its new name", slug: "its new slug" },
    examples: ['--name "Example Ltd" --slug example-ltd'],
  }),
  organizationChange(
    "suspend",
    "reject an organization's paid requests and changes with 403 (it can still read)",
    {
      fieldNames: ["reason"],
      help: { reason: "the reason, which only operators see" },
      examples: ["", '--reason "unpaid invoice 62"'],
      constantBody: { status: "suspended" },
    },
  ),
  organizationChange("resume", "end an organization's suspension", {
    fieldNames: [],
    constantBody: { status: "active" },
  }),
  organizationChange(
    "limit",
    "limit an organization's paid requests per minute, over all its keys",
    {
      fieldNames: ["<rpm_limit>"],
      help: { rpm_limit: "paid requests per minute" },
      examples: ["5000", "none"],
    },
  ),
  organizationChange("prices", "assign a price list to an organization, effective immediately", {
    fieldNames: ["<price_list>"],
    help: { price_list: "the list's name" },
    examples: ["partners", "none"],
  }),
  { operation: `GET ${ORG}/members`, columns: MEMBERS },
  {
    command: "members add",
    operation: `POST ${ORG}/members`,
    fieldNames: ["<email>", "role"],
    examples: ["dev@example.com --role member"],
    columns: "id, email, role",
    note: "Added. To create a key for the member: keys create {org} --member {email} --name <name>",
  },
  {
    command: "members role",
    operation: `PATCH ${MEMBER}`,
    summary: "change the role of a member and of the member's keys",
    fieldNames: ["<role>"],
    help: { role: "its new role" },
    examples: ["billing"],
    outputText: (member) => table([member], MEMBERS),
    note: "{email} is now {role}.",
  },
  {
    operation: `DELETE ${MEMBER}`,
    outputText: "Removed member {id}; its keys are revoked.",
  },
  {
    command: "keys create",
    operation: `POST ${MEMBER}/keys`,
    summary: "create a key for a member and print it once, to stdout",
    flags: ["member_id"],
    help: {
      member_id: "the member's ID or email address",
      name: "the display name",
      rpm_limit: "requests per minute (default 60)",
    },
    examples: [
      "--member owner@example.com --name Server",
      "--member owner@example.com --name Edge --scope global --rpm-limit 600",
    ],
    outputText: "{key}",
    note: "{id}, {scope}, {rpm_limit} requests per minute.",
  },
  {
    operation: `GET ${ORG}/keys`,
    columns: "id, name, prefix, scope, >rpm_limit rpm, revoked, last_used_at, member_id",
  },
  { operation: `GET ${ONE_KEY}`, columns: KEY },
  {
    command: "keys limit",
    operation: `PATCH ${ONE_KEY}`,
    summary: "change a key's requests per minute, effective immediately",
    fieldNames: ["<rpm_limit>"],
    examples: ["600"],
    columns: KEY,
    note: "{id} now has a limit of {rpm_limit} requests per minute.",
  },
  {
    command: "keys rename",
    operation: `PATCH ${ONE_KEY}`,
    summary: "change a key's name",
    fieldNames: ["<name>"],
    help: { name: "its new name" },
    examples: ['"Old server"'],
    columns: KEY,
    note: "{id} is renamed.",
  },
  {
    command: "keys revoke",
    operation: `DELETE ${ONE_KEY}`,
    summary: "revoke a key permanently (its next request returns 401)",
    confirmationOf: confirmRevocation,
    columns: KEY,
    note: "{id} is revoked.",
  },
  {
    operation: `PATCH ${ONE_KEY}`,
    examples: ["--budget-dollars 20 --budget-period month"],
    columns: KEY,
  },
  {
    operation: `POST ${ONE_KEY}/rotate`,
    examples: ["--overlap-seconds 3600 --idempotency-key leak-1"],
    columns: KEY,
  },
  {
    operation: `POST ${ORG}/invitations`,
    examples: ["--role admin --email dana@example.com", "--role member --member dev@example.com"],
  },
  {
    operation: "GET /purchases",
    command: "purchases all",
    help: { org: "the ID or slug of one organization", state: "a state, or refunded" },
    examples: ["--state refunded --from 2026-11-01"],
    outputText: purchasesWords,
  },
  {
    operation: "GET /events",
    command: "operators events",
    help: { org: "the ID or slug of one organization", operator: "the name of one operator" },
    examples: ["--operator eva"],
    outputText: eventsWords,
  },
  {
    operation: `POST ${ORG}/purchases/{purchase_id}/refund`,
    examples: ["--amount-cents 500 --idempotency-key refund-1"],
  },
  {
    operation: `DELETE ${ORG}`,
    command: "orgs remove",
    confirmationOf: confirmClosing,
    examples: ["", "--give-up-balance"],
  },
  { operation: `POST ${ORG}/restore`, command: "orgs restore", columns: ORGANIZATION },
  {
    command: "credits add",
    operation: `POST ${ORG}/credits`,
    summary: "add paid credits",
    helpText: "Retries are safe: reusing a --reference adds no credits.",
    problemOf: ({ amount_micro }) =>
      Number(amount_micro) < 0 ? "To remove credits, use credits correct." : null,
    confirmationOf: confirmLargeCredits,
    examples: ['--dollars 25 --reference "invoice 1"', '--micros 1 --reference "a test"'],
    outputText: BALANCE,
  },
  {
    command: "credits forgive",
    operation: `POST ${ORG}/owed`,
    summary: "forgive debt from refunded or disputed payments",
    examples: ["--dollars 2.50 --reference goodwill"],
    outputText: "Remaining debt: {owed_micro}",
  },
  {
    command: "credits correct",
    operation: `POST ${ORG}/credits`,
    summary: "correct a balance by a signed amount, but never below the open holds",
    helpText: "Retries are safe: reusing a --reference changes nothing.",
    confirmationOf: confirmLargeCredits,
    examples: ['--dollars -2.50 --reference "refund of invoice 1"'],
    outputText: BALANCE,
  },
  {
    command: "ledger",
    operation: `GET ${ORG}/ledger`,
    fieldNames: ["after_seq", "limit"],
    examples: ["", "--all --json"],
    columns:
      ">seq, created_at time, kind, >amount_micro dollars, >balance_micro balance, reference|generation_id reference or generation",
    widths: [7, 20, 9, 13, 15], // fits the values of any page
  },
  {
    command: "usage",
    operation: `GET ${ORG}/usage`,
    fieldNames: ["from", "to", "group_by"],
    help: {
      from: "first day, YYYY-MM-DD in UTC (default: the last 30 days)",
      to: "last day, inclusive",
    },
    examples: ["", "--from 2026-11-01 --to 2026-11-30 --group-by model"],
    makeCalls: wholeUsage,
    outputText: usageWords,
  },
  {
    command: "alerts",
    operation: `GET ${ORG}/alerts`,
    columns:
      "created_at time, kind, external_id end user, period, >threshold, >limit_micro limit, >value_micro value",
  },
  {
    operation: `GET ${ORG}/sessions`,
    examples: ["--limit 20"],
    columns: "id, =key_id, =end_user, spent_dollars, =budget_dollars, =expires_at",
  },
  {
    command: "sessions end",
    operation: `DELETE ${ORG}/sessions/{session_id}`,
  },
  {
    operation: `GET ${ORG}/pauses`,
    columns: "id, scope, subject, =until, source, reason",
  },
  {
    operation: `POST ${ORG}/pauses`,
    help: {
      scope: "the kind of owner",
      id: "the ID of the member, key or session (omit it for the organization)",
      reason: "shown in errors and events",
      until: "when it ends, such as 2027-01-31T00:00:00Z (default: until you end it)",
    },
    examples: ['--scope organization --reason "unusual traffic"'],
  },
  {
    command: "pauses end",
    operation: `DELETE ${ORG}/pauses/{pause_id}`,
  },
  {
    command: "events",
    operation: `GET ${ORG}/events`,
    examples: ["--type key.rotated --from 2026-11-01"],
    columns: "=created_at, type, actor, subject, id",
  },
  {
    operation: `GET ${ORG}/webhooks`,
    outputText: ({ webhooks }) =>
      table((webhooks as readonly JsonRecord[]).map(webhookRow), WEBHOOKS),
  },
  {
    operation: `GET ${WEBHOOK}/deliveries`,
    columns: "=created_at, type, state, attempts, =status, =error, =event_id",
  },
  { operation: `POST ${WEBHOOK}/test` },
  { operation: `POST ${WEBHOOK}/replay`, examples: ["--since 2026-11-21"] },
  {
    operation: "GET /catalog",
    summary:
      "list every model with its routes (--json adds cost, price, and why a route isn't sold)",
    columns: "id, kind, aliases",
  },
  {
    operation: "GET /prices",
    examples: ["", "--list default --limit 20"],
    outputText: ({ prices }) => table((prices as readonly JsonRecord[]).map(pricedRow), PRICED),
  },
  { operation: "DELETE /prices/{price_id}" },
  { operation: "GET /merchants", columns: "name, =created_at, =rotated_at, created_by" },
  { operation: "POST /merchants", examples: ["--name search"] },
  { command: "merchants rotate", operation: "POST /merchants/{name}/rotate" },
  {
    command: "rebuild-wallet",
    operation: `POST ${ORG}/rebuild-wallet`,
    summary: "restore a lost wallet from the database (a healthy wallet is unchanged)",
    note: "The wallet of {org} was rebuilt from the database.",
  },
];

const PRICED = "list, item, =from, >input, >cached, >cache_write, >output, >percent, id";

function pricedRow({ price, ...row }: JsonRecord): JsonRecord {
  return { ...row, ...(price as JsonRecord | null) };
}

const WEBHOOKS =
  "id, url, enabled, =disabled_reason, state health, failing_since_at failing since, >waiting, =last_error, types";

/** Returns a webhook with its health fields, which are null if the region can't read them. */
function webhookRow({ health, ...webhook }: JsonRecord): JsonRecord {
  const { state, failing_since, waiting, last_error } = (health ?? {}) as JsonRecord;
  const known = { state: state ?? "unknown", failing_since_at: failing_since, waiting, last_error };
  return { ...webhook, ...known };
}
