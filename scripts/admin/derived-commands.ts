import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import * as z from "zod";
import { textTable } from "../table.ts";
import { idText, organizationName, WrongUsage } from "./arguments.ts";
import { does, examples, group, note, organizationId, show } from "./session.ts";
import { ask, pathOf } from "./transport.ts";
import type { Call } from "./transport.ts";
import { fields } from "./words.ts";

/** What is read of an operation's description. */
type Described = {
  readonly summary: string;
  readonly query?: readonly { readonly name: string; readonly schema: Schema }[];
  readonly body?: z.ZodType;
};
/** Described beside the Worker's own types, which programs for Node are not compiled with. */
const DESCRIPTIONS: string = "../openapi/operator-operations.ts";
const { OPERATOR_OPERATIONS } = (await import(DESCRIPTIONS)) as {
  readonly OPERATOR_OPERATIONS: Readonly<Record<string, Described>>;
};

/** A command, and the operation below `/admin/v1` that says all the rest of it: what it takes and does. */
type Derived = {
  readonly command: string;
  readonly operation: `${Call["method"]} /${string}`;
  /** What follows the organisation in its example. */
  readonly example: string;
  /** Of a list: the columns that are shown. */
  readonly columns?: readonly string[];
};

const KEY = "key_0VbYLVeiej0Be1V2ivdE8L5o";
const HOOK = "whk_0VbYLVeiej0Be1V2ivdE8L5o";
const ORG = "/orgs/{id}";
const WEBHOOK = `${ORG}/webhooks/{webhook_id}` as const;
const DERIVED: readonly Derived[] = [
  {
    command: "keys change",
    operation: `PATCH ${ORG}/keys/{key_id}`,
    example: `${KEY} --budget-dollars 20 --budget-period month`,
  },
  {
    command: "keys rotate",
    operation: `POST ${ORG}/keys/{key_id}/rotate`,
    example: `${KEY} --overlap-seconds 3600 --idempotency-key leak-1`,
  },
  {
    command: "sessions list",
    operation: `GET ${ORG}/sessions`,
    example: "--limit 20",
    columns: ["id", "key_id", "end_user", "spent_dollars", "budget_dollars", "expires_at"],
  },
  {
    command: "sessions end",
    operation: `DELETE ${ORG}/sessions/{session_id}`,
    example: `ses_${"0".repeat(40)}`,
  },
  {
    command: "events",
    operation: `GET ${ORG}/events`,
    example: "--type key.rotated --from 2026-11-01",
    columns: ["created_at", "type", "actor", "subject", "id"],
  },
  {
    command: "webhooks list",
    operation: `GET ${ORG}/webhooks`,
    example: "",
    columns: ["id", "url", "enabled", "disabled_reason", "types"],
  },
  {
    command: "webhooks deliveries",
    operation: `GET ${WEBHOOK}/deliveries`,
    example: HOOK,
    columns: ["created_at", "type", "state", "attempts", "status", "error", "event_id"],
  },
  { command: "webhooks test", operation: `POST ${WEBHOOK}/test`, example: HOOK },
  {
    command: "webhooks replay",
    operation: `POST ${WEBHOOK}/replay`,
    example: `${HOOK} --since 2026-11-21`,
  },
];

const GROUPS: Readonly<Record<string, string>> = {
  sessions: "short-lived tokens of an organisation's keys",
  webhooks: "where an organisation's events are sent",
};

/** Null as an option: commander makes an empty text of null itself. */
const NONE = Symbol("none");

/** A parameter's JSON Schema, as far as an option reads it. */
type Schema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | null)[];
  readonly anyOf?: readonly Schema[];
  readonly default?: unknown;
};
type Parameter = { readonly name: string; readonly schema: Schema; readonly isRequired: boolean };

/** Adds the commands whose flags and words are those of their operations. */
export function addDerivedCommands(program: Command): void {
  for (const row of DERIVED) addDerived(program, row);
}

function addDerived(program: Command, row: Derived): void {
  const { command: words, operation, example, columns } = row;
  const [method, path] = operation.split(" ") as [Call["method"], string];
  const described = OPERATOR_OPERATIONS[`${method} /admin/v1${path}`];
  if (described === undefined) throw new Error(`nothing describes ${operation}`);
  const command = place(program, words).description(described.summary.replaceAll("`", ""));
  const names = [...path.matchAll(/\{(\w+?)(?:_id)?\}/g)].map(([, name = ""]) => name);
  for (const name of names) {
    if (name === "id") command.argument("<org>", "id or slug", organizationName);
    else command.argument(`<${name}>`, `the ${name}'s id`, idText);
  }
  const query = (described.query ?? []).map(({ name, schema }) => {
    return { name, schema, isRequired: false };
  });
  const body = bodyOf(described.body);
  for (const parameter of [...query, ...body]) command.addOption(optionOf(parameter));
  const isNamed = path.endsWith("/rotate");
  if (isNamed) {
    const says = "names the call: a repeat with it changes nothing";
    command.requiredOption("--idempotency-key <text>", says);
  }
  examples(command, `${words} --local eu example ${example}`.trim());
  does(command, async (session, [org, id]: [string, string?], given: Record<string, unknown>) => {
    const filled = path.split("/").filter((segment) => segment !== "");
    const orgId = await organizationId(session, org);
    const ids = [orgId, id ?? ""];
    const segments = filled.map((one) => (one.startsWith("{") ? (ids.shift() ?? "") : one));
    const sent = valuesOf(body, given);
    if (method === "PATCH" && Object.keys(sent).length === 0) {
      throw new WrongUsage("Say what to change: --help lists it.");
    }
    const answer = await ask<Record<string, unknown>>(session.admin, {
      method,
      path: pathOf(...segments),
      query: valuesOf(query, given) as Call["query"] & object,
      ...(body.length > 0 && { body: sent }),
      ...(isNamed && { idempotencyKey: String(given["idempotencyKey"]) }),
    });
    show(session, answer, () => wordsOf(answer, columns));
    for (const next of ["after", "since"]) {
      const at = answer[`next_${next}`];
      if (typeof at === "string") note(`Go on with --${next} ${at}`);
    }
    if (typeof answer["key"] === "string") note("The key is shown this once: keep it now.");
  });
}

/** The command of these words, in its group. */
function place(program: Command, words: string): Command {
  const [first = "", second] = words.split(" ");
  if (second === undefined) return program.command(first);
  const known = program.commands.find((one) => one.name() === first);
  return (known ?? group(program, first, GROUPS[first] ?? first)).command(second);
}

function bodyOf(schema: z.ZodType | undefined): Parameter[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
  }) as { properties?: Record<string, Schema>; required?: readonly string[] };
  return Object.entries(properties).map(([name, one]) => {
    return { name, schema: one, isRequired: required.includes(name) };
  });
}

function optionOf({ name, schema, isRequired }: Parameter): Option {
  const { enum: choice = [] } = schema;
  const types = [schema.type ?? []].flat();
  const kinds: readonly Schema[] = schema.anyOf ?? types.map((type) => ({ type, enum: choice }));
  const isNullable = kinds.some(({ type }) => type === "null");
  const kind = kinds.find(({ type }) => type !== "null") ?? schema;
  const choices = kind.enum?.filter((one) => one !== null) ?? [];
  const flag = `--${name.replaceAll("_", "-")} <${kind.type === "array" ? "a,b" : "value"}>`;
  const says = [choices.join(", "), ...(isNullable ? ["none"] : [])].filter((one) => one !== "");
  const option = new Option(flag, says.join(", or ")).makeOptionMandatory(isRequired);
  return option.argParser((text) => {
    if (isNullable && text === "none") return NONE;
    if (choices.length > 0 && !choices.includes(text)) {
      throw new InvalidArgumentError(`Allowed choices are ${choices.join(", ")}.`);
    }
    if (kind.type === "array") return text.split(",");
    if (kind.type !== "number" && kind.type !== "integer") return text;
    const number = Number(text);
    if (text.trim() !== "" && Number.isFinite(number)) return number;
    throw new InvalidArgumentError("It must be a number.");
  });
}

/** What was given of these parameters, under the names that the region knows. */
function valuesOf(parameters: readonly Parameter[], given: Record<string, unknown>): object {
  const named = parameters.map(({ name }) => [name, given[camelCase(name)]] as const);
  const told = named.filter(([, value]) => value !== undefined);
  return Object.fromEntries(told.map(([name, value]) => [name, value === NONE ? null : value]));
}

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A list as a table of its columns, anything else field by field. */
function wordsOf(answer: Record<string, unknown>, columns: readonly string[] | undefined): string {
  if (columns === undefined) {
    return fields(Object.entries(answer).map(([name, value]) => [name, textOf(value)]));
  }
  const list = Object.values(answer).find((value) => Array.isArray(value)) as
    | readonly Record<string, unknown>[]
    | undefined;
  const titles = columns.map((title) => ({ title: title.replaceAll("_", " ") }));
  return textTable(
    titles,
    (list ?? []).map((row) => columns.map((name) => textOf(row[name]))),
  );
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.map(textOf).join(",");
  if (typeof value === "object") return Object.values(value).map(textOf).join(":");
  return typeof value === "string" ? value : JSON.stringify(value);
}
