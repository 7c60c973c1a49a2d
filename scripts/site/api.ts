import { callInLanguages } from "./api-calls.ts";
import { fieldsOf } from "./api-fields.ts";
import type { FieldRow, Json } from "./api-fields.ts";
import type { Page } from "./audiences.ts";
import { slugOf } from "./html.ts";

type Operation = {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Json;
  }[];
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
};
type Response = { readonly description: string; readonly content?: Content };
type Content = Readonly<Record<string, { readonly schema?: Json; readonly example?: unknown }>>;
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Response>>;
    readonly schemas: Readonly<Record<string, Json>>;
  };
};
type Named = { readonly name: string; readonly path: string; readonly operation: Operation };

/** The response of every failure. */
const ERROR: Json = { $ref: "#/components/schemas/Error" };

/**
 * Returns the API reference as Markdown: an index of all operations, and a page with all fields for
 * each task.
 */
export function apiPages(text: string): Page[] {
  const document = JSON.parse(text) as Document;
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Named => {
      return { name: `${method.toUpperCase()} ${path}`, path, operation };
    }),
  );
  const groups = groupsOf(all);
  const pages = groups.map(({ page, title, own }): Page => {
    const parts = own.map((one) => operationPart(one, document));
    const index = own.map(
      ({ name, operation }) => `- [\`${name}\`](#${slugOf(`\`${name}\``)}): ${operation.summary}`,
    );
    return { name: page, markdown: [`# ${title}`, index.join("\n"), ...parts].join("\n\n") };
  });
  const error = table("Fields of an error", rowsOf(ERROR, document.components.schemas));
  const [operators, customers] = [groups.filter(isOperators), groups.filter((one) => !isOperators(one))];
  const more = `Operators have [a reference of their own](${OPERATORS}.md).`;
  const index = indexPage("api", "API reference", customers, more);
  const theirs = indexPage(OPERATORS, "API reference for operators", operators);
  return [{ ...index, markdown: [index.markdown, ...error].join("\n\n") }, theirs, ...pages];
}

const OPERATORS = "api/operators";
const isOperators = ({ page }: Group): boolean => page.startsWith(OPERATORS);

type Group = { readonly page: string; readonly title: string; readonly own: readonly Named[] };

/** Groups operations by task, each for one page. */
function groupsOf(all: readonly Named[]): Group[] {
  const byTask = Map.groupBy(all, ({ path, operation }) => taskOf(path, operation));
  return [...byTask].map(([task, own]): Group => {
    const place = task.startsWith("Operators: ") ? "operators-" : "";
    const slug = slugOf(task.replace("Operators: ", ""));
    return { page: `api/${place}${slug}`, title: `API: ${task}`, own };
  });
}

function taskOf(path: string, operation: Operation): string {
  if (!path.startsWith("/admin/")) return operation.tags[0] ?? "";
  const [, , , , , noun = "organizations"] = path.split("/");
  return `Operators: ${path.includes("/orgs") ? noun.replaceAll("-", " ") : "region"}`;
}

function indexPage(name: string, title: string, groups: readonly Group[], more = ""): Page {
  const intro =
    "All operations by task, with their fields and recorded examples. The OpenAPI document is at [openapi.json](/openapi.json). Replace `https://YOUR-REGION` with the address of your region.";
  const folder = name.slice(0, name.lastIndexOf("/") + 1); // links are relative to the page
  const at = (page: string): string => page.slice(folder.length);
  const lists = groups.map(({ page, title: heading, own }) => {
    const lines = own.map(
      ({ name: call, operation }) =>
        `- [\`${call}\`](${at(page)}.md#${slugOf(`\`${call}\``)}): ${operation.summary}`,
    );
    return `## ${heading.replace("API: ", "")}\n\n${lines.join("\n")}`;
  });
  return { name, markdown: [`# ${title}`, `${intro} ${more}`.trim(), ...lists].join("\n\n") };
}

function operationPart({ name, operation }: Named, document: Document): string {
  const { responses: shared, schemas } = document.components;
  const { summary, description, parameters = [], requestBody } = operation;
  const responses = Object.entries(operation.responses).map(([status, given]) => {
    const own = "$ref" in given ? shared[given.$ref.split("/").at(-1) ?? ""] : given;
    return [status, own ?? { description: "", content: {} }] as const;
  });
  const success = responses.find(([status]) => status.startsWith("2"));
  const errors = responses
    .filter(([status]) => !status.startsWith("2"))
    .map(([status, { description: names }]) => `${status} ${linkErrors(names)}`);
  const rows = parameters.map(({ name: field, in: place, required, description: says, schema }) => {
    const words = fieldsOf({ properties: { [field]: schema } }, schemas)[0];
    const is = `${words?.type ?? ""}${required === true ? ", required" : ""}`;
    return [`${field} (${place})`, is, [says, words?.words].filter(Boolean).join(" ")];
  });
  return [
    `## \`${name}\``,
    `<!-- keywords: ${summary.toLowerCase()} -->`,
    `${summary}. ${description}`,
    ...table("Parameters", rows),
    ...bodyTables(requestBody?.content, schemas),
    ...callOf(name, operation),
    ...fieldTable("Response fields", success?.[1].content, schemas),
    ...example(`Response, ${success?.[0] ?? ""}`, success?.[1].content),
    `Errors: ${errors.join("; ")}.`,
  ].join("\n\n");
}

/** Returns the request in three languages, or nothing for the console's own calls. */
function callOf(name: string, { parameters = [], requestBody, security }: Operation): string[] {
  if (security.some((way) => "session" in way)) return [];
  const [method = "", path = ""] = name.split(" ");
  const body = requestBody?.content["application/json"]?.example;
  const isOnce = parameters.some((one) => one.name === "Idempotency-Key" && one.required === true);
  return callInLanguages({ method, path, body, isOnce });
}

function linkErrors(names: string): string {
  return names.replaceAll(/`(\w+)`/g, "[`$1`](../errors.md#$1)");
}

/** Depth of fields that are shown unfolded. */
const OPEN_DEPTH = 2;

/** Returns an unfolded table of the body's required fields, and a folded table of all others. */
function bodyTables(
  content: Content | undefined,
  schemas: Readonly<Record<string, Json>>,
): string[] {
  const schema = content?.["application/json"]?.schema;
  if (schema === undefined) return [];
  const fields = fieldsOf(schema, schemas);
  const optional = new Set(fields.filter(({ isRequired }) => !isRequired).map(({ path }) => path));
  const isFolded = (path: string): boolean =>
    path.split(".").length > OPEN_DEPTH ||
    [...path.matchAll(/\[\]|\.|$/g)].some(({ index }) => optional.has(path.slice(0, index)));
  const [required, rest] = [false, true].map((is) => fields.filter(({ path }) => isFolded(path) === is));
  return [
    ...table("Required fields", rowsOfFields(required ?? []), "open-fields"),
    ...table("Other fields", rowsOfFields(rest ?? [])),
  ];
}

function fieldTable(
  title: string,
  content: Content | undefined,
  schemas: Readonly<Record<string, Json>>,
): string[] {
  const schema = content?.["application/json"]?.schema;
  if (schema === undefined) return [];
  return table(title, rowsOf(schema, schemas));
}

function rowsOf(schema: Json, schemas: Readonly<Record<string, Json>>): string[][] {
  return rowsOfFields(fieldsOf(schema, schemas));
}

function rowsOfFields(fields: readonly FieldRow[]): string[][] {
  return fields.map(({ path, type, isRequired, words }) => {
    return [path, `${type}${isRequired ? ", required" : ""}`, words];
  });
}

/**
 * Returns a block that the site shows as a table, with a line for each row and `|` between cells.
 */
function table(title: string, rows: readonly (readonly string[])[], kind = "fields"): string[] {
  if (rows.length === 0) return [];
  const lines = rows.map((row) => row.map((cell) => cell.replaceAll("```", "")).join(" | "));
  return [`\`\`\`${kind} ${title}\n${lines.join("\n")}\n\`\`\``];
}

/** Maximum records of a list in an example. */
const RECORDS_MOST = 2;

function example(title: string, content: Content | undefined): string[] {
  const whole = content?.["application/json"]?.example;
  if (whole === undefined) return [];
  let isCut = false;
  const text = JSON.stringify(
    whole,
    (_, value: unknown) => {
      const isLong = Array.isArray(value) && value.length > RECORDS_MOST;
      if (!isLong || typeof value[0] !== "object") return value;
      isCut = true;
      return value.slice(0, RECORDS_MOST);
    },
    2,
  );
  const note = isCut ? ` (the first ${RECORDS_MOST} of each list)` : "";
  return [`${title}${note}:`, `\`\`\`json\n${text}\n\`\`\``];
}
