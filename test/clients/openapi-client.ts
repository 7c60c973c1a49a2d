type Operation = {
  readonly requestBody?: unknown;
  readonly parameters?: readonly { name: string; in: string; required?: boolean }[];
};
export type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};
/** An operation's request and response. */
export type Example = { readonly request?: unknown; readonly answer: unknown };

/** The generated program: each customer operation by its name, in the order of the examples. */
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
 * Returns a program that calls each customer operation by openapi-fetch with openapi-typescript's
 * types and the example's body. `filled` replaces the parameters in a path.
 */
export function programText(
  { paths }: Document,
  examples: Readonly<Record<string, Example>>,
): string {
  const calls = Object.entries(examples).flatMap(([name, { request }]) => {
    const [method = "", at = ""] = name.split(" ");
    if (at.startsWith("/admin/")) return [];
    const { parameters = [], requestBody } = paths[at]?.[method.toLowerCase()] ?? {};
    const filledParameters = parameters.flatMap((one) => {
      if (one.in === "path") return [[one, `filled("${one.name}", "${at}")`] as const];
      return one.required === true ? [[one, JSON.stringify("example-1")] as const] : [];
    });
    const params = ["path", "header"].map((where) => {
      const fields = filledParameters
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
