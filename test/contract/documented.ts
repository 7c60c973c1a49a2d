import * as z from "zod";
import { openApiDocument } from "../../scripts/openapi/document.ts";
import examples from "../../scripts/openapi/examples.json";
import { OPERATIONS } from "../../scripts/openapi/operations.ts";
import { routingPath } from "../../src/shared/http/routing-path.ts";

type Json = { readonly [name: string]: unknown };
type Header = { readonly required?: true; readonly schema: Json };
type Answer = {
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content: Readonly<Record<string, { readonly schema: Json }>>;
};
type Document = {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Json>> }>>>
  >;
  readonly components: {
    readonly schemas: Json;
    readonly headers: Readonly<Record<string, Header>>;
    readonly responses: Readonly<Record<string, Answer>>;
  };
};

/** The served OpenAPI document, which all recorded responses must match. */
export const DOCUMENT = openApiDocument(examples) as unknown as Document;

const PATTERNS = OPERATIONS.map(({ method, path, name }) => {
  // IDs of models and end users can contain slashes.
  const tail = /^\/v1\/(?:models|users)\//.test(path) ? ".+" : "[^/]+";
  return { method, path, name, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, tail)}$`) };
});

/** Headers of transport, caching and browsers, which operations don't document. */
const COMMON_HEADERS =
  /^(?:content-(?:type|length|encoding|security-policy)|transfer-encoding|cache-control|vary|set-cookie|strict-transport-security|x-content-type-options|access-control-.*)$/;

/**
 * Returns the response, or throws if its status, headers, type or JSON aren't documented. Checks
 * events as they pass. Ignores paths that aren't operations.
 */
export async function checkDocumented(request: Request, response: Response): Promise<Response> {
  const at = routingPath(request);
  const method = request.method.toLowerCase();
  const found = PATTERNS.find((one) => one.method === method && one.pattern.test(at));
  if (found === undefined) return response;
  const subject = `${found.name}: ${response.status}`;
  const answer = answerOf(found, response.status);
  if (answer === null) throw new Error(`${subject} is not in the OpenAPI document`);
  checkHeaders(subject, answer, response.headers);
  const type = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
  const schema = answer.content[type]?.schema;
  if (schema === undefined) throw new Error(`${subject} of type '${type}' is not in the document`);
  const check = checkerOf(schema, subject);
  if (type === "application/json") {
    check(await response.clone().json());
    return response;
  }
  return type === "text/csv" ? response : checkedEvents(response, check);
}

type Found = (typeof PATTERNS)[number];

function answerOf({ path, method }: Found, status: number): Answer | null {
  const entry = DOCUMENT.paths[path]?.[method]?.responses[status] as
    | (Partial<Answer> & { readonly $ref?: string })
    | undefined;
  const shared = DOCUMENT.components.responses[entry?.$ref?.split("/").at(-1) ?? ""];
  return shared ?? (entry as Answer | undefined) ?? null;
}

function checkHeaders(subject: string, answer: Answer, headers: Headers): void {
  const entries = Object.entries(answer.headers).map(([name, { $ref }]) => {
    return [name, DOCUMENT.components.headers[$ref.split("/").at(-1) ?? ""]] as const;
  });
  const known = new Map(entries);
  for (const [name, value] of headers) {
    if (COMMON_HEADERS.test(name)) continue;
    const header = known.get(name);
    if (header === undefined) throw new Error(`${subject} has the header ${name}, undocumented`);
    const parsed = header.schema["type"] === "integer" ? Number(value) : value;
    checkerOf(header.schema, `${subject}, header ${name}`)(parsed);
  }
  const missing = entries.find(([name, header]) => header?.required === true && !headers.has(name));
  if (missing === undefined) return;
  throw new Error(`${subject} lacks ${missing[0]}, which the document promises`);
}

type Check = (value: unknown) => void;
const checkers = new Map<Json, z.ZodType>();

/** Returns a check that throws for values that don't match a schema of the document. */
function checkerOf(schema: Json, subject: string): Check {
  const checker = checkers.get(schema) ?? z.fromJSONSchema(withComponents(schema));
  checkers.set(schema, checker);
  return (value) => {
    const checked = checker.safeParse(value);
    if (checked.success) return;
    const shown = JSON.stringify(value).slice(0, 300);
    const reason = z.prettifyError(checked.error);
    throw new Error(`${subject} is not as the OpenAPI document says: ${reason}: ${shown}`);
  };
}

/** Returns the schema with the components that it refers to. All components would take too long. */
function withComponents(schema: Json): z.core.JSONSchema.BaseSchema {
  const $defs: Record<string, unknown> = {};
  const add = (part: unknown): void => {
    for (const [, name = ""] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (Object.hasOwn($defs, name)) continue;
      $defs[name] = DOCUMENT.components.schemas[name];
      add($defs[name]);
    }
  };
  add(schema);
  const whole = JSON.stringify({ $defs, allOf: [schema] });
  return JSON.parse(
    whole.replaceAll("#/components/schemas/", "#/$defs/"),
  ) as z.core.JSONSchema.BaseSchema;
}

/**
 * Returns the stream, which fails at an undocumented event. Its reader controls the pace and can
 * cancel it.
 */
function checkedEvents(response: Response, check: Check): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const decoder = new TextDecoder();
  let rest = "";
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = events.pop() ?? "";
        for (const event of events) checkEvent(event, check);
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}

function checkEvent(event: string, check: Check): void {
  for (const line of event.split("\n").filter((one) => one.startsWith("data: "))) {
    const data = line.slice("data: ".length);
    if (data !== "[DONE]") check(JSON.parse(data));
  }
}
