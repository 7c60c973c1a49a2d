import type * as core from "zod/v4/core";
import { PAID_HEADERS } from "./headers.ts";
import type { HeaderParameter } from "./headers.ts";
import type { Route } from "../../src/shared/http/route.ts";
import { queryOf } from "./schemas.ts";
import type { QueryParameter } from "./schemas.ts";
import { factsOf } from "./route-facts.ts";
import type { OperationFacts } from "./route-facts.ts";

/** The parts of an operation that the route tables lack. */
export type Description = {
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly QueryParameter[];
  readonly headers?: readonly HeaderParameter[];
  readonly body?: core.$ZodType;
  /** Whether the body can be a form. */
  readonly takesForms?: true;
  /** Whether the body is optional. */
  readonly isBodyOptional?: true;
  /** Schemas of successful responses by status. */
  readonly answers: Readonly<Record<number, core.$ZodType>>;
  /** The data of each event, if the response can be a stream. */
  readonly events?: core.$ZodType;
  /** Media types, if the response is a file. */
  readonly files?: readonly string[];
  /** Whether the response has a `location` header. */
  readonly hasLocation?: true;
  /** Whether merchants can call the operation. Their responses lack the headers of a key. */
  readonly isForMerchants?: true;
  /** Anchors of docs/errors.md for the operation's own errors. */
  readonly errors?: readonly string[];
};

declare const KEYS: unique symbol;
type Primitive = string | number | boolean | null | undefined;
/**
 * A type whose objects can have only the listed fields, so that an object with other fields isn't
 * assignable.
 */
type Closed<T> = unknown extends T
  ? unknown
  : T extends Primitive
    ? T
    : T extends readonly (infer Item)[]
      ? readonly Closed<Item>[]
      : { readonly [K in keyof T]: Closed<T[K]> } & { readonly [KEYS]?: keyof T & string };
/** A description whose schemas allow all values of a type. */
type Allows<T> = { readonly allows?: (body: Closed<T>) => void };

type Segment<Text extends string> = Text extends `:${infer Name}{${string}`
  ? `{${Name}}`
  : Text extends `:${infer Name}`
    ? `{${Name}}`
    : Text;
/** A row's name with its parameters in braces. */
type InBraces<Name extends string> = Name extends `${infer Head}/${infer Tail}`
  ? `${Segment<Head>}/${InBraces<Tail>}`
  : Segment<Name>;
type Fielded<Body> = Body extends unknown ? (string extends keyof Body ? never : Body) : never;
type TypeOf<Row> = Row extends { readonly typed?: infer T } ? NonNullable<T> : never;
/**
 * The descriptions of typed rows. Each needs a schema for the response bodies of its handler.
 * Stored responses, whose type has no fields, aren't compared.
 */
export type DescriptionsOf<Row> = {
  readonly [
    T in TypeOf<Row> as T extends { readonly name: infer Name extends string }
      ? InBraces<Name>
      : never
  ]: Description & Allows<T extends { readonly body: infer Body } ? Fielded<Body> : never>;
} & Readonly<Record<string, Description>>;

type QuerySchema = core.$ZodType & { readonly shape: object };
type DescriptionFields = Omit<Description, "summary" | "answers" | "query"> & {
  readonly 200?: core.$ZodType;
  readonly 201?: core.$ZodType;
  readonly 202?: core.$ZodType;
  readonly query?: QuerySchema | readonly QueryParameter[];
};

type Outputs<S> = S extends { readonly _zod: { readonly output: infer Output } } ? Output : never;

/** Returns an operation with its summary, its success by status, and more. */
export function described<S extends DescriptionFields>(
  summary: string,
  said: S,
): Description & Allows<Outputs<S[keyof S & (200 | 201 | 202)]>> {
  const { 200: ok, 201: created, 202: accepted, query, ...more }: DescriptionFields = said;
  const all = Object.entries({ 200: ok, 201: created, 202: accepted });
  const answers = Object.fromEntries(
    all.flatMap(([status, schema]) => (schema === undefined ? [] : [[status, schema]])),
  ) as Description["answers"];
  if (query === undefined) return { summary, answers, ...more };
  return { summary, answers, ...more, query: "shape" in query ? queryOf(query) : query };
}

/** Prefixes the paths of operations and adds common headers. */
export function withPrefix(
  under: string,
  operations: Readonly<Record<string, Description>>,
  all: Pick<Description, "headers"> = {},
): Readonly<Record<string, Description>> {
  const entries = Object.entries(operations).map(([name, one]) => {
    return [name.replace(" ", ` ${under}`), { ...all, ...one }];
  });
  return Object.fromEntries(entries) as Record<string, Description>;
}

/** Tags of the document by the start of a path. Other paid paths have the tag Inference. */
const TAGS: readonly (readonly [paths: RegExp, tag: string])[] = [
  [/^\/admin/, "Operator"],
  [/^\/console/, "People"],
  [/^\/v1\/(?:chat\/)?completions/, "Chat"],
  [/^\/v1\/responses/, "Responses"],
  [/^\/v1\/messages/, "Messages"],
  [/^\/v1\/embeddings/, "Embeddings"],
  [/^\/v1\/models/, "Models"],
  [/^\/v1\/(?:auth\/)?keys?(?:\/|$)/, "Keys"],
  [/^\/v1\/sessions/, "Sessions"],
  [/^\/v1\/(?:balance|holds|charges|credits)/, "Credits"],
  [/^\/v1\/(?:usage|alerts|exports)/, "Usage"],
  [/^\/v1\/(?:generations?|errors)/, "Requests"],
  [/^\/v1\/events/, "Events"],
  [/^\/v1\/webhooks/, "Webhooks"],
  [/^\/v1\/users/, "End users"],
  [/^\/v1\/(?:orgs|members|pauses)/, "Organization"],
];

/** A method of a path in the OpenAPI document. */
export type Operation = Description &
  OperationFacts & {
    readonly tag: string;
    /** The name in examples and tests, such as `GET /v1/keys/{id}`. */
    readonly name: string;
    readonly method: "get" | "post" | "patch" | "delete";
    /** The full path, with parameters in braces. */
    readonly path: string;
  };

/** Returns the operations of routes in order. Throws for missing or extra descriptions. */
export function operationsOf(
  rows: readonly Route[],
  descriptions: Readonly<Record<string, Description>>,
): readonly Operation[] {
  const operations = rows.map((row) => {
    const path = row.path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}");
    const name = `${row.method} ${path}`;
    const description = descriptions[name];
    if (description === undefined) throw new Error(`scripts/openapi doesn't describe ${name}`);
    const method = row.method.toLowerCase() as Operation["method"];
    const facts = factsOf(row, description);
    const errors = [...new Set([...facts.errors, ...(description.errors ?? [])])];
    const [, own] = TAGS.find(([paths]) => paths.test(path)) ?? [];
    const tag = own ?? (facts.isPaid ? "Inference" : undefined);
    if (tag === undefined) throw new Error(`scripts/openapi has no tag for ${name}`);
    const headers = [...(facts.isPaid ? PAID_HEADERS : []), ...(description.headers ?? [])];
    return { ...description, ...facts, errors, headers, tag, name, method, path };
  });
  const names = new Set(operations.map(({ name }) => name));
  const unknown = Object.keys(descriptions).find((name) => !names.has(name));
  if (unknown !== undefined) throw new Error(`scripts/openapi describes ${unknown}, which is not`);
  return operations;
}
