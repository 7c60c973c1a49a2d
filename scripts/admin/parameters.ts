import { Argument, InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import * as z from "zod";
import {
  AN_HOUR,
  day,
  dayOrHour,
  idText,
  memberName,
  microsOfDollarText,
  microsOfText,
  organizationName,
  wholeNumber,
  WrongUsage,
} from "./arguments.ts";
import { HELP, VALUES } from "./command-words.ts";
import type { CommandFields } from "./commands.ts";

/** The parts of an operation's description that commands use. */
export type DescribedOperation = {
  readonly summary: string;
  readonly query?: readonly { readonly name: string; readonly schema: Schema }[];
  readonly body?: z.ZodType;
  readonly errors?: readonly string[];
};
/** The parts of a parameter's JSON Schema that commands use. */
type Schema = {
  readonly type?: string | readonly string[] | undefined;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly (string | null)[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
};
export type Parameter = {
  readonly name: string;
  readonly where: "path" | "query" | "body";
  readonly schema: Schema;
  readonly isRequired: boolean;
};

/** A value for null in options, because commander turns null into an empty text. */
const NONE = Symbol("none");
/** The bound from which bounds aren't shown in the help. */
const UNSAID = 1e9;

/** Returns a command's parameters in the order of its help. */
export function parametersOf(
  path: string,
  { query = [], body }: Pick<DescribedOperation, "query" | "body">,
  { fieldNames: takes }: CommandFields,
): Parameter[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]): Parameter => {
    return { name, where: "path", schema: {}, isRequired: true };
  });
  const inQuery = query.map(({ name, schema }): Parameter => {
    return { name, where: "query", schema, isRequired: false };
  });
  const others = [...inQuery, ...fieldsOf(body)].filter(
    ({ name }) => takes === undefined || takes.includes(name) || takes.includes(`<${name}>`),
  );
  return [...inPath, ...others];
}

function fieldsOf(body: z.ZodType | undefined): Parameter[] {
  if (body === undefined) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(body, {
    io: "input",
    unrepresentable: "any",
  }) as { properties?: Record<string, Schema>; required?: readonly string[] };
  return Object.entries(properties).map(([name, schema]) => {
    return { name, where: "body", schema, isRequired: required.includes(name) };
  });
}

/** Reports whether a parameter is an argument rather than a flag. */
export function isArgument(
  { name, where }: Parameter,
  { fieldNames: takes = [], flags = [] }: CommandFields,
): boolean {
  return where === "path" ? !flags.includes(name) : takes.includes(`<${name}>`);
}

/** Returns a field's flag: `--personal` for `is_personal`, `--member` for `member_id`. */
export function flagOf(name: string): string {
  return `--${name.replaceAll(/^is_|_(?:id|seq)$/g, "").replaceAll("_", "-")}`;
}

/**
 * Adds a parameter to a command. Returns a function that reads its value after parsing, or
 * undefined if it wasn't given.
 */
export function addParameter(
  command: Command,
  parameter: Parameter,
  fields: CommandFields & { readonly isChange: boolean },
): () => unknown {
  const { name, isRequired } = parameter;
  if (name.endsWith("_micro")) return addAmount(command);
  const kind = kindOf(parameter, fields.isChange);
  const text = helpOf(fields.help?.[name] ?? HELP[name], parameter, kind);
  const parse = parserOf(parameter, kind);
  if (isArgument(parameter, fields)) {
    const at = command.registeredArguments.length;
    const word = name === "id" ? "org" : name.replace(/_(?:id|limit)$/, "");
    const argument = new Argument(`<${word}>`, text);
    // The choices are only shown in the help, because `parse` checks them.
    if (kind.choices.length > 0) argument.choices(kind.choices);
    command.addArgument(argument.argParser(parse));
    return () => valueOf(command.processedArgs[at]);
  }
  const value = kind.type === "boolean" ? "" : ` <${placeholderOf(name, kind)}>`;
  const option = new Option(`${flagOf(name)}${value}`, text).makeOptionMandatory(isRequired);
  if (kind.choices.length > 0) option.choices(kind.choices);
  if (value !== "") option.argParser(parse).default(kind.default);
  command.addOption(option);
  return () => valueOf(command.getOptionValue(option.attributeName()));
}

function valueOf(given: unknown): unknown {
  return given === NONE ? null : given;
}

/** Adds `--dollars` and `--micros`. Users must give one of them. */
function addAmount(command: Command): () => number {
  const dollars = new Option("--dollars <amount>", "dollars, at most 6 decimals");
  const micros = new Option("--micros <amount>", "micro-credits (millionths of a dollar)");
  command.addOption(dollars.argParser(microsOfDollarText).conflicts("micros"));
  command.addOption(micros.argParser(microsOfText));
  return () => {
    const { dollars: amount = command.getOptionValue("micros") as unknown } = command.opts();
    if (typeof amount !== "number") throw new WrongUsage("Give --dollars or --micros.");
    if (amount === 0) throw new WrongUsage("The amount must not be 0.");
    return amount;
  };
}

/** The schema without null. `isNullable` allows null, written `none`. */
type Kind = Schema & { readonly choices: readonly string[]; readonly isNullable: boolean };

function kindOf({ schema }: Parameter, isChange: boolean): Kind {
  const types = schema.anyOf?.map(({ type }) => type) ?? [schema.type].flat();
  const kind = schema.anyOf?.find(({ type }) => type !== "null") ?? {
    ...schema,
    type: types.find((type) => type !== "null"),
  };
  return {
    ...kind,
    choices: kind.enum?.filter((one) => one !== null) ?? [],
    isNullable: isChange && types.includes("null"),
  };
}

function helpOf(help: string | undefined, { name }: Parameter, kind: Kind): string {
  const { type, minimum, maximum, isNullable } = kind;
  const isBounded = type === "integer" && maximum !== undefined && maximum < UNSAID;
  const text = help ?? (name.endsWith("_id") ? `the ${name.slice(0, -3)}'s ID` : "");
  const parts = [text, isBounded ? `${minimum} to ${maximum}` : "", isNullable ? "or none" : ""];
  return parts.filter((part) => part !== "").join(", ");
}

function placeholderOf(name: string, { type, format }: Kind): string {
  const known = VALUES[name];
  if (known !== undefined) return known;
  if (type === "array") return "a,b";
  if (type === "integer" || type === "number") return "number";
  if (format === "date") return "day";
  const isTime = format === "date-time" || name === "since" || name.endsWith("_at");
  return isTime ? "time" : (flagOf(name).split("-").at(-1) ?? name);
}

function parserOf({ name, where }: Parameter, kind: Kind): (text: string) => unknown {
  if (name === "id") return organizationName;
  if (name === "member_id") return memberName;
  if (where === "path") return idText;
  const parse = parserOfKind(kind);
  return (text) => (kind.isNullable && text === "none" ? NONE : parse(text));
}

function parserOfKind(kind: Kind): (text: string) => unknown {
  const { type, format, pattern, choices, minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = kind;
  if (choices.length > 0) return choiceOf(choices);
  if (type === "integer") return wholeNumber(minimum, maximum);
  if (isJson(kind)) return jsonValue;
  if (type === "array") return (text) => text.split(",");
  if (type === "number") return decimal;
  if (format === "date") return day;
  return pattern !== undefined && new RegExp(pattern).test(AN_HOUR) ? dayOrHour : (text) => text;
}

function isJson({ type, items }: Kind): boolean {
  return type === "object" || items?.type === "object";
}

function choiceOf(choices: readonly string[]): (text: string) => string {
  return (text) => {
    if (choices.includes(text)) return text;
    throw new InvalidArgumentError(`Allowed choices are ${choices.join(", ")}.`);
  };
}

function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("It must be JSON.");
  }
}

function decimal(text: string): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  throw new InvalidArgumentError("It must be a number.");
}
