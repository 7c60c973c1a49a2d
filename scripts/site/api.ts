type Json = { readonly [name: string]: unknown };
type Operation = {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: Json;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
};
type Response = { readonly description: string; readonly content: Content };
type Content = Readonly<Record<string, { readonly example?: unknown }>>;

/** The API reference as a page of Markdown: each operation of an OpenAPI document with what it was asked and answered. */
export function apiPage(document: string): string {
  const { paths, components } = JSON.parse(document) as {
    paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    components: { readonly responses: Readonly<Record<string, Response>> };
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return { name: `${method.toUpperCase()} ${path}`, operation };
    }),
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0] ?? ""))];
  const partOf = (tag: string): string => {
    const own = operations.filter(({ operation }) => operation.tags[0] === tag);
    const texts = own.map(({ name, operation }) => operationPart(name, operation, components.responses));
    return [`## ${tag}`, ...texts].join("\n\n");
  };
  const intro =
    "Every call, with an answer that a region gave. For programs: [openapi.json](/openapi.json).";
  return ["# API reference", intro, ...tags.map(partOf)].join("\n\n");
}

function operationPart(
  name: string,
  operation: Operation,
  shared: Readonly<Record<string, Response>>,
): string {
  const { summary, description, parameters = [], requestBody } = operation;
  const responses = Object.entries(operation.responses).map(([status, given]) => {
    const own = "$ref" in given ? shared[given.$ref.split("/").at(-1) ?? ""] : given;
    return [status, own ?? { description: "", content: {} }] as const;
  });
  const success = responses.find(([status]) => status.startsWith("2"));
  const errors = responses
    .filter(([status]) => !status.startsWith("2"))
    .map(([status, { description: names }]) => `${status} ${linked(names)}`);
  const asked = parameters.filter((parameter) => parameter.in !== "path");
  return [
    `### \`${name}\``,
    `${summary}. ${description}`,
    ...(asked.length > 0 ? [table(asked)] : []),
    ...example("Request", requestBody?.content),
    ...example(`Answer, ${success?.[0] ?? ""}`, success?.[1].content),
    `Errors: ${errors.join("; ")}.`,
  ].join("\n\n");
}

function linked(names: string): string {
  return names.replaceAll(/`(\w+)`/g, "[`$1`](errors.md#$1)");
}

function table(parameters: NonNullable<Operation["parameters"]>): string {
  const rows = parameters.map(({ name, in: place, schema }) => {
    return `| \`${name}\` | ${place} | ${wordsOf(schema)} |`;
  });
  return ["| name | where | what |", "| --- | --- | --- |", ...rows].join("\n");
}

/** What a value must be; a pattern is for programs. */
function wordsOf(schema: Json): string {
  const words = Object.entries(schema).flatMap(([word, value]) => {
    if (word === "pattern") return [];
    if (word !== "anyOf") return [`${word} ${String(value)}`];
    return [(value as Json[]).map((one) => wordsOf(one)).join(" or ")];
  });
  return words.join(", ");
}

/** Records of a list that an example shows: the third tells nobody more, and there are dozens of models. */
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
