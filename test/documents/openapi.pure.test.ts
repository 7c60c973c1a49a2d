import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { openApiDocument } from "../../scripts/openapi/document.ts";
import { ANCHORS } from "../../scripts/openapi/failures.ts";
import { addCorsHeaders } from "../../src/shared/http/cors.ts";
import { anchorsOf } from "./links.ts";
import { readPage, ROOT } from "./pages.ts";

type Operation = {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, Answer>>;
};
type Answer = {
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly links?: Readonly<Record<string, Link>>;
};
type Link = { readonly operationId: string; readonly parameters: Readonly<Record<string, string>> };
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Answer>> };
};

const document = openApiDocument({}) as unknown as Document;
const text = JSON.stringify(document);
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
const byId = new Map(operations.map((operation) => [operation.operationId, operation]));

/** Headers that the document describes elsewhere, or that API clients don't send. */
const NO_PARAMETERS = new Set([
  // described by securitySchemes and requestBody
  "authorization",
  "x-api-key",
  "content-type",
  // sent by the transport or a browser
  "content-length",
  "content-encoding",
  "origin",
  "access-control-request-headers",
  "sec-fetch-site",
  "cookie",
  "set-cookie",
  // sent by Stripe, or response headers
  "stripe-signature",
  "stripe-should-retry",
  "request-id",
  "location",
  "cf-connecting-ip",
  // identify Codex
  "originator",
  "user-agent",
  "accept",
  // sent by peers and hosts
  "x-request-id",
  "retry-after",
  "signature",
  "signature-input",
  "content-digest",
  "cf-mitigated",
]);

it("the OpenAPI document lists exactly the request headers that the code reads", () => {
  const files = readdirSync(path.join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const read = files
    .filter(
      (name) =>
        name.endsWith(".ts") &&
        !/^models\/(?:core|providers|protocols\/converse)\/|^console\/browser\//.test(name),
    )
    .flatMap((name) => {
      const source = readFileSync(path.join(ROOT, "src", name), "utf8");
      const named = source.matchAll(/(?:\bheader|headers\.get)\(\s*(?:"([\w-]+)"|END_USER)/g);
      return [...named].map(([, word = "x-end-user"]) => word);
    });
  const headersRead = new Set(read.filter((name) => !NO_PARAMETERS.has(name)));
  const documented = operations.flatMap(({ parameters = [] }) =>
    parameters.filter((one) => one.in === "header").map(({ name }) => name.toLowerCase()),
  );
  expect([...headersRead].toSorted()).toEqual([...new Set(documented)].toSorted());
});

it("browser scripts can read every response header that is documented below /v1", () => {
  const headers = new Headers();
  addCorsHeaders(headers, "https://app.example.com", null);
  const exposed = new Set(headers.get("access-control-expose-headers")?.split(", "));
  const answers = Object.entries(document.paths)
    .filter(([at]) => at.startsWith("/v1/"))
    .flatMap(([, methods]) =>
      Object.values(methods).flatMap(({ responses }) => Object.values(responses)),
    );
  const named = [...answers, ...Object.values(document.components.responses)].flatMap((answer) =>
    Object.keys(answer.headers ?? {}),
  );
  exposed.add("www-authenticate"); // its content is fixed
  expect([...new Set(named)].filter((name) => !exposed.has(name))).toEqual([]);
});

it("the OpenAPI document's links point only to operations, and contain all path parameters", () => {
  const links = operations.flatMap(({ responses }) =>
    Object.values(responses).flatMap((answer) => Object.values(answer.links ?? {})),
  );
  expect(links.length).toBeGreaterThan(20);
  for (const { operationId, parameters } of links) {
    const declared = byId.get(operationId)?.parameters ?? [];
    const inPath = declared.filter((one) => one.in === "path").map(({ name }) => name);
    expect(Object.keys(parameters).toSorted()).toEqual(inPath.toSorted());
  }
});

it("the OpenAPI document contains only portable patterns, without Unicode classes or lookaround", () => {
  const patterns = [...text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, one = ""]) => {
    return JSON.parse(one) as string;
  });
  expect(patterns.length).toBeGreaterThan(10);
  expect(patterns.filter((one) => /\\p\{|\(\?[=!<]/.test(one))).toEqual([]);
});

it("docs/errors.md has a heading for every error of the OpenAPI document", () => {
  const anchors = anchorsOf(readPage("docs/errors.md"));
  expect(ANCHORS.filter((anchor) => !anchors.has(anchor))).toEqual([]);
});
