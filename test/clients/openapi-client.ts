type Operation = {
  readonly requestBody?: unknown;
  readonly parameters?: readonly { name: string; in: string; required?: boolean }[];
};
export type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};
/** What an operation was asked and answered. */
export type Example = { readonly request?: unknown; readonly answer: unknown };

/** What the generated program gives: each customers' operation by its name, in the order of the examples. */
export type Program = {
  readonly callsOf: (
    options: {
      readonly baseUrl: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly fetch: (request: Request) => Promise<Response>;
    },
    filled: (parameter: string, path: string) => string,
  ) => Readonly<Record<string, () => Promise<{ data?: unknown; response: Response }>>>;
};

/**
 * A program that has each customers' operation asked by openapi-fetch under openapi-typescript's types, with the
 * body that its example has; `filled` says at each call what stands in a path's braces.
 */
export function programText(
  { paths }: Document,
  examples: Readonly<Record<string, Example>>,
): string {
  const calls = Object.entries(examples).flatMap(([name, { request }]) => {
    const [method = "", at = ""] = name.split(" ");
    if (at.startsWith("/admin/")) return [];
    const { parameters = [], requestBody } = paths[at]?.[method.toLowerCase()] ?? {};
    const given = parameters.flatMap((one) => {
      if (one.in === "path") return [[one, `filled("${one.name}", "${at}")`] as const];
      return one.required === true ? [[one, JSON.stringify("example-1")] as const] : [];
    });
    const params = ["path", "header"].map((where) => {
      const fields = given
        .filter(([one]) => one.in === where)
        .map(([one, value]) => `"${one.name}": ${value}`);
      return fields.length === 0 ? "" : `${where}: { ${fields.join(", ")} },`;
    });
    const parts = [
      params.join("") === "" ? "" : `params: { ${params.join(" ")} },`,
      requestBody === undefined ? "" : `body: ${JSON.stringify(request)},`,
    ].join(" ");
    return [`    "${name}": () => client.${method}("${at}", { ${parts} }),`];
  });
  return `import createClient from "openapi-fetch";
import type { ClientOptions } from "openapi-fetch";
import type { paths } from "./openapi";
export function callsOf(options: ClientOptions, filled: (parameter: string, path: string) => string) {
  const client = createClient<paths>(options);
  return {
${calls.join("\n")}
  };
}
`;
}
