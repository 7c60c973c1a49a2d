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
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content: Content }>
  >;
};
type Content = Readonly<Record<string, { readonly example?: unknown }>>;

/** The API reference as a page of Markdown: each operation of an OpenAPI document with what it was asked and answered. */
export function apiPage(document: string): string {
  const { paths } = JSON.parse(document) as {
    paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return { name: `${method.toUpperCase()} ${path}`, operation };
    }),
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0] ?? ""))];
  const partOf = (tag: string): string => {
    const own = operations.filter(({ operation }) => operation.tags[0] === tag);
    const texts = own.map(({ name, operation }) => operationPart(name, operation));
    return [`## ${tag}`, ...texts].join("\n\n");
  };
  const intro =
    "Every call, with an answer that a region gave. For programs: [openapi.json](/openapi.json).";
  return ["# API reference", intro, ...tags.map(partOf)].join("\n\n");
}

function operationPart(name: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const success = Object.entries(responses).find(([status]) => status.startsWith("2"));
  const errors = Object.entries(responses)
    .filter(([status]) => !status.startsWith("2"))
    .map(([status, { description: names }]) => `${status} ${linked(names)}`);
  const query = parameters.filter((parameter) => parameter.in === "query");
  return [
    `### \`${name}\``,
    `${summary}. ${description}`,
    ...(query.length > 0 ? [table(query)] : []),
    ...example("Request", requestBody?.content),
    ...example(`Answer, ${success?.[0] ?? ""}`, success?.[1].content),
    `Errors: ${errors.join("; ")}.`,
  ].join("\n\n");
}

function linked(names: string): string {
  return names.replaceAll(/`(\w+)`/g, "[`$1`](errors.md#$1)");
}

function table(parameters: NonNullable<Operation["parameters"]>): string {
  const rows = parameters.map(({ name, schema }) => {
    const words = Object.entries(schema).map(([word, value]) => `${word} ${String(value)}`);
    return `| \`${name}\` | ${words.join(", ")} |`;
  });
  return ["| query | what |", "| --- | --- |", ...rows].join("\n");
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
