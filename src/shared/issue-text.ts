import type * as z from "zod/mini";
import { assert } from "./assert.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Options for zod that omit zod's error messages and keep the schema's. */
export const WITHOUT_ZOD_MESSAGES: z.core.ParseContext<Issue> = { error: () => "" };

const PARAM_SHOWN_MAX = 200;
const ABSENCE_CODES = new Set<Issue["code"]>(["invalid_type", "invalid_value", "invalid_union"]);

/** A problem, phrased to follow the parameter's name. Null if the parameter is missing. */
type IssueText = { readonly param: string | null; readonly problem: string | null };

export function describeSchemaError(error: z.core.$ZodError, value: unknown): IssueText {
  const [issue] = error.issues;
  assert(issue !== undefined, "a refusal names an issue");
  const found = bestFittingIssue(issue, issue.path);
  const received = valueAt(value, found.path);
  const param = formatErrorParam(found.path);
  if (param !== null && received === undefined && ABSENCE_CODES.has(found.issue.code)) {
    return { param, problem: null };
  }
  const schemaMessage = found.issue.message;
  return {
    param,
    problem: schemaMessage === "" ? describeIssue(found.issue, received) : schemaMessage,
  };
}

export function formatErrorParam(path: readonly PropertyKey[]): string | null {
  const text = path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
  return text === "" ? null : text.slice(0, PARAM_SHOWN_MAX);
}

function describeIssue(issue: Issue, received: unknown): string {
  const { code } = issue;
  if (code === "too_big") {
    return describeBound(issue, Number(issue.maximum), "at most", "less than");
  }
  if (code === "too_small") {
    return describeBound(issue, Number(issue.minimum), "at least", "more than");
  }
  if (code === "not_multiple_of") return `must be a multiple of ${issue.divisor}`;
  if (code === "invalid_key") return "is not a valid name for a field";
  if (code === "invalid_format") {
    return issue.format === "regex" ? "has a wrong format" : `must be a valid ${issue.format}`;
  }
  if (code === "unrecognized_keys") {
    return `has an unknown field '${(issue.keys[0] ?? "").slice(0, PARAM_SHOWN_MAX)}'`;
  }
  return describeExpected(expectedValues(issue), received);
}

type Bound = z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall;

function describeBound(
  issue: Bound,
  limit: number,
  inclusiveText: string,
  exclusiveText: string,
): string {
  const comparison = issue.inclusive === false ? exclusiveText : inclusiveText;
  const amount = `${issue.exact === true ? "exactly" : comparison} ${limit}`;
  if (issue.origin === "array") return `must have ${amount} ${pluralize("item", limit)}`;
  if (issue.origin === "string") return `must be ${amount} ${pluralize("character", limit)} long`;
  return `must be ${amount}`;
}

function pluralize(noun: string, count: number): string {
  return count === 1 ? noun : `${noun}s`;
}

function describeExpected(expected: readonly string[], received: unknown): string {
  if (expected.length === 0) return "is not valid";
  const choices = [...new Set(expected)];
  const list = joinWithOr(choices);
  const kind = kindOf(received);
  const hasSameKind = choices.some(
    (choice) => choice.endsWith(kind.slice(2)) || choice.startsWith('"'),
  );
  return hasSameKind ? `must be ${list}` : `must be ${list}, not ${kind}`;
}

function expectedValues(issue: Issue): string[] {
  if (issue.code === "invalid_type") return [NOUNS[issue.expected] ?? `a ${issue.expected}`];
  if (issue.code === "invalid_value") return issue.values.map(quoteChoice);
  if (issue.code !== "invalid_union") return [];
  // Only a discriminated union has `options`.
  const options = "options" in issue ? (issue.options ?? []) : [];
  const branchIssues = issue.errors.flatMap(([first]) => first ?? []);
  return [...options.map(quoteChoice), ...branchIssues.flatMap(expectedValues)];
}

function quoteChoice(choice: unknown): string {
  return typeof choice === "string" ? `"${choice}"` : String(choice);
}

const NOUNS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
  null: "null",
};

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return typeof value === "boolean" ? "a boolean" : `a ${typeof value}`;
}

type IssueAtPath = { readonly issue: Issue; readonly path: Path };

/**
 * Returns the first problem of a union's best-fitting branch, the branch with the deepest problem.
 */
function bestFittingIssue(issue: Issue, path: Path): IssueAtPath {
  if (issue.code !== "invalid_union") return { issue, path };
  const found = issue.errors
    .flatMap(([first]) => (first === undefined ? [] : [first]))
    .map((first) => bestFittingIssue(first, [...path, ...first.path]));
  const deeperIssues = found.filter(
    (inner) => inner.path.length > path.length || !ABSENCE_CODES.has(inner.issue.code),
  );
  const longestPath = Math.max(...deeperIssues.map((inner) => inner.path.length));
  const first = deeperIssues.find((inner) => inner.path.length === longestPath);
  if (first === undefined) return { issue, path };
  return { ...first, issue: mergeAllowedValues(first, deeperIssues) };
}

function mergeAllowedValues(first: IssueAtPath, branches: readonly IssueAtPath[]): Issue {
  if (first.issue.code !== "invalid_value") return first.issue;
  const values = branches.flatMap(({ issue, path }) =>
    issue.code === "invalid_value" && formatErrorParam(path) === formatErrorParam(first.path)
      ? issue.values
      : [],
  );
  return { ...first.issue, values };
}

function valueAt(value: unknown, path: Path): unknown {
  let at: unknown = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Readonly<Record<PropertyKey, unknown>>)[key];
  }
  return at;
}

/** Joins words to a list such as "a, b or c". */
export function joinWithOr(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}

const MODEL_SHOWN_MAX = 100;

export function unknownModelMessage(model: string): string {
  return `The model '${shortenModelName(model)}' does not exist or is not available in this region. GET /v1/models lists the models.`;
}

export function shortenModelName(model: string): string {
  return model.length > MODEL_SHOWN_MAX ? `${model.slice(0, MODEL_SHOWN_MAX)}...` : model;
}
