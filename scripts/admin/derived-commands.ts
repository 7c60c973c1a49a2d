import type { Command } from "commander";
import { WrongUsage } from "./arguments.ts";
import { GROUPS, SAMPLES } from "./command-words.ts";
import { BY_HAND, ROWS } from "./commands.ts";
import type { Row } from "./commands.ts";
import { addParameter, flagOf, isArgument, parametersOf } from "./parameters.ts";
import type { DescribedOperation, Parameter } from "./parameters.ts";
import { setAction, examples, group, memberId, printNote, printResult } from "./session.ts";
import type { Session } from "./session.ts";
import { ask, pathOf } from "./transport.ts";
import type { Call } from "./transport.ts";
import { fields, fillIn, table, textOf } from "./words.ts";
import type { JsonRecord } from "./words.ts";

/**
 * The path of the descriptions. A computed import is typed here, because Node programs aren't
 * compiled with the Worker's types.
 */
const DESCRIPTIONS: string = "../openapi/operator-operations.ts";
const { OPERATOR_OPERATIONS } = (await import(DESCRIPTIONS)) as {
  readonly OPERATOR_OPERATIONS: Operations;
};
type Operations = Readonly<Record<string, DescribedOperation>>;

/** A row with its defaults and the readers of its parameters. */
type Derived = {
  readonly row: Row;
  readonly method: Call["method"];
  readonly path: string;
  readonly hasBody: boolean;
  readonly parameters: ReadonlyMap<Parameter, () => unknown>;
};
type Options = {
  readonly all?: true;
  readonly idempotencyKey?: string;
  readonly yes?: true;
};

/**
 * Adds a command for each operation in `OPERATOR_OPERATIONS` and `more` that `BY_HAND` doesn't
 * list. Flags, bounds and help come from the operation.
 */
export function addDerivedCommands(program: Command, more: Operations = {}): void {
  const operations = { ...OPERATOR_OPERATIONS, ...more };
  const known = new Set<string>([...BY_HAND, ...ROWS.map(({ operation }) => operation)]);
  const others = Object.keys(operations)
    .map((name) => name.replace("/admin/v1", "") as Row["operation"])
    .filter((operation) => !known.has(operation));
  const first = new Map<string, string[]>();
  for (const row of [...ROWS, ...others.map((operation): Row => ({ operation }))]) {
    const [name, example] = addDerived(program, row, operations);
    first.set(name, [...(first.get(name) ?? []), example]);
  }
  for (const one of program.commands.filter(({ commands }) => commands.length > 0)) {
    examples(one, ...(first.get(one.name()) ?? []));
  }
}

/** Adds one command. Returns its first word and its first example. */
function addDerived(program: Command, row: Row, operations: Operations): [string, string] {
  const described = operations[row.operation.replace(" ", " /admin/v1")];
  if (described === undefined) throw new Error(`nothing describes ${row.operation}`);
  const [method, path] = row.operation.split(" ") as [Call["method"], string];
  const name = row.command ?? nameOf(method, path);
  const { summary, body, errors = [] } = described;
  const lowered = `${summary.charAt(0).toLowerCase()}${summary.slice(1)}`.replaceAll("`", "");
  const command = addCommandAt(program, name).description(row.summary ?? lowered);
  const asked = { ...row, isChange: method === "PATCH" };
  const parameters = parametersOf(path, described, row);
  const readers = parameters.map((one) => [one, addParameter(command, one, asked)] as const);
  if (errors.includes("idempotency_mismatch")) {
    const why = "a unique key for the call: a retry with the same key changes nothing";
    command.requiredOption("--idempotency-key <text>", why);
  }
  if (row.widths !== undefined) {
    command.option("--all", "print all rows, page by page (with --json, one page per line)");
  }
  if (row.confirmationOf !== undefined) command.option("--yes", "confirm it");
  if (row.helpText !== undefined) command.addHelpText("after", `\n${row.helpText}`);
  const derived = { row, method, path, hasBody: body !== undefined, parameters: new Map(readers) };
  setAction(command, (session, _: unknown, options: Options) => run(derived, session, options));
  const ids = parameters.filter((one) => one.where === "path" && isArgument(one, row));
  const samples = ids.map((one) => SAMPLES[one.name] ?? `<${one.name}>`);
  const lines = (row.examples ?? [""]).map((one) => {
    return [name, "--local eu", ...samples, one].join(" ").trimEnd();
  });
  examples(command, ...lines);
  return [name.split(" ")[0] ?? name, lines[0] ?? name];
}

/** Returns the default command, such as `keys list`, `keys show` or `webhooks test`. */
function nameOf(method: Call["method"], path: string): string {
  const [first = "", ...more] = path.split("/").filter((part) => /^[a-z]/.test(part));
  const [noun = first, deed] = more;
  if (deed !== undefined) return `${noun} ${deed}`;
  const read = path.endsWith("}") ? "show" : "list";
  return `${noun} ${{ GET: read, POST: "create", PATCH: "change", DELETE: "remove" }[method]}`;
}

/** Creates a command in its group. Creates the group if it is missing. */
function addCommandAt(program: Command, words: string): Command {
  const [first = "", second] = words.split(" ");
  if (second === undefined) return program.command(first);
  const known = program.commands.find((one) => one.name() === first);
  return (known ?? group(program, first, GROUPS[first] ?? first)).command(second);
}

async function run(derived: Derived, session: Session, options: Options): Promise<void> {
  const { row } = derived;
  const body = bodyOf(derived);
  const call = await callOf(derived, session, body, options);
  if (options.all === true) return printAllPages(derived, session, call);
  const effect =
    options.yes === true ? null : ((await row.confirmationOf?.(session.admin, call)) ?? null);
  if (effect !== null) throw new WrongUsage(`${effect} Nothing was changed. Add --yes to confirm.`);
  const answer = await (row.makeCalls ?? ask<JsonRecord>)(session.admin, call);
  printResult(session, answer, () => wordsOf(derived, answer));
  if (row.note !== undefined) {
    const changes = Object.entries(body).map(([name, to]) => `${name} is now ${textOf("", to)}`);
    const { id: org } = parametersIn(derived, "path");
    printNote(fillIn(row.note, { ...answer, org, changes: changes.join(", ") }));
  }
  noteNextPage(derived, answer, call.query?.["limit"]);
}

/** Returns the request body. Throws `WrongUsage` for an empty change or an invalid body. */
function bodyOf(derived: Derived): JsonRecord {
  const { row, method, parameters } = derived;
  const body = { ...parametersIn(derived, "body"), ...row.constantBody };
  if (method === "PATCH" && Object.keys(body).length === 0) {
    const flags = [...parameters.keys()].filter(({ where }) => where === "body");
    throw new WrongUsage(
      row.fieldNames === undefined
        ? "Give at least one option. --help lists them."
        : `Give ${flags.map(({ name }) => flagOf(name)).join(" or ")}.`,
    );
  }
  const wrong = row.problemOf?.(body) ?? null;
  if (wrong !== null) throw new WrongUsage(wrong);
  return body;
}

/** Returns the given parameters for one part of the call. */
function parametersIn({ parameters }: Derived, part: Parameter["where"]): JsonRecord {
  const asked = [...parameters].filter(([{ where }]) => where === part);
  const values = asked.map(([{ name }, read]) => [name, read()] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

async function callOf(
  derived: Derived,
  session: Session,
  body: JsonRecord,
  { idempotencyKey }: Options,
): Promise<Call> {
  const { method, path, hasBody } = derived;
  return {
    method,
    path: await filledPath(session, path, parametersIn(derived, "path")),
    query: parametersIn(derived, "query") as Call["query"] & object,
    ...(hasBody && { body }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

/** Fills in the path and replaces a member's email address with the ID. Throws `NotFound`. */
async function filledPath(session: Session, path: string, named: JsonRecord): Promise<string> {
  const { id: org, member_id: member } = named;
  const ids = { ...named };
  if (typeof org === "string" && typeof member === "string") {
    ids["member_id"] = await memberId(session, org, member);
  }
  const parts = path.slice(1).split("/");
  return pathOf(...parts.map((one) => String(one.startsWith("{") ? ids[one.slice(1, -1)] : one)));
}

function wordsOf(derived: Derived, answer: JsonRecord, head = true): string {
  const { outputText: words, columns, widths = [] } = derived.row;
  if (typeof words === "function") return words(answer);
  if (words !== undefined) return fillIn(words, answer);
  const list = listOf(derived, answer);
  return list === null
    ? fields(answer, columns)
    : table(list, columns ?? Object.keys(list[0] ?? {}).join(", "), { widths, head });
}

/** Returns a list's items, or null for a record. */
function listOf({ method, path }: Derived, answer: JsonRecord): readonly JsonRecord[] | null {
  if (method !== "GET" || path.endsWith("}")) return null;
  return (Object.values(answer).find((value) => Array.isArray(value)) ?? null) as
    | readonly JsonRecord[]
    | null;
}

/** Prints all pages of a list. Each page is as large as the region allows. */
async function printAllPages(derived: Derived, session: Session, call: Call): Promise<void> {
  const parameters = [...derived.parameters.keys()];
  const limit = parameters.find(({ name }) => name === "limit")?.schema.maximum ?? 1;
  const query: Record<string, string | number | undefined> = { ...call.query, limit };
  for (let printed = 0; ;) {
    const page = await ask<JsonRecord>(session.admin, { ...call, query });
    const rows = listOf(derived, page)?.length ?? 0;
    if (printed === 0 || rows > 0) {
      printResult(session, page, () => wordsOf(derived, page, printed === 0));
    }
    printed += rows;
    printNote(`${printed} rows`);
    const next = nextOf(derived, page, limit);
    if (next === null) return;
    query[next.name] = next.value;
  }
}

/** Returns the parameter for the next page with its value, or null on the last page. */
function nextOf(
  derived: Derived,
  answer: JsonRecord,
  limit: unknown,
): { readonly name: string; readonly value: string | number } | null {
  const shown = listOf(derived, answer)?.length;
  for (const { name } of derived.parameters.keys()) {
    const value = answer[`next_${name}`];
    if (typeof value === "string") return { name, value };
    // The cursor is also present on the last page.
    if (typeof value === "number" && shown === limit) return { name, value };
  }
  return null;
}

/** Prints how to get the next page, or that a key is shown only once. */
function noteNextPage(derived: Derived, answer: JsonRecord, limit: unknown): void {
  const { total, offset, key } = answer;
  const shown = listOf(derived, answer)?.length ?? 0;
  if (typeof total === "number" && typeof offset === "number" && offset + shown < total) {
    printNote(`${shown} of ${total}. Continue with --offset ${offset + shown}`);
  }
  const next = nextOf(derived, answer, limit);
  if (next !== null) printNote(`Continue with ${flagOf(next.name)} ${next.value}`);
  const secret = typeof key === "object" && key !== null && "key" in key ? key.key : key;
  if (typeof secret === "string") printNote("The key is shown only once. Store it now.");
}
