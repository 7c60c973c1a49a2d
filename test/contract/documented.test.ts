import { expect, it } from "vitest";
import { openApiDocument } from "../../scripts/openapi/document.ts";
import { OPERATIONS } from "../../scripts/openapi/operations.ts";
import examples from "../../scripts/openapi/examples.json";
import { app } from "../../src/app.ts";
import { checkDocumented } from "./documented.ts";

/** Answers that are no JSON. */
const NO_JSON = new Set(["GET /admin/v1/metrics"]);
const documented = OPERATIONS.map(({ name }) => name);
const { paths } = openApiDocument(examples) as { paths: Record<string, Record<string, object>> };

it("the OpenAPI document has every operation below /v1 and /admin/v1, and no other", () => {
  const routes = app.routes.filter(({ method }) => method !== "ALL");
  const names = routes
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}")}`)
    .filter((name) => /^\w+ \/(?:admin\/)?v1\//.test(name) && !NO_JSON.has(name));
  expect(documented.toSorted()).toEqual([...new Set(names)].toSorted());
});

/** Calls whose answer needs a wallet that was lost or a charge that was; their shapes are in the contract tests. */
const NO_EXAMPLE = new Set([
  "POST /admin/v1/orgs/{id}/settle",
  "POST /admin/v1/orgs/{id}/rebuild-wallet",
]);

it.each(documented)(
  "%s has a summary, its roles, its errors and an answer that was given",
  async (name) => {
    const [method = "", path = ""] = name.split(" ");
    const operation = JSON.stringify(paths[path]?.[method.toLowerCase()]);
    expect(operation).toMatch(/"summary":"[^"]{5,}".*Who may: \w+.*"429":.*"503":/s);
    if (NO_EXAMPLE.has(name)) return;
    const example = (examples as Record<string, { answer: unknown } | undefined>)[name];
    expect(example, "npm run openapi:examples").toBeDefined();
    const request = new Request(`https://eu.test${path.replaceAll(/[{}]/g, "")}`, { method });
    const status = Number(Object.keys(OPERATIONS[documented.indexOf(name)]?.answers ?? {}).at(-1));
    await checkDocumented(request, Response.json(example?.answer, { status }));
  },
);

it.each([
  ["a field that the document does not know", { credits_micro: 1, credits: 1 }, 200],
  ["a status that it does not know", { credits_micro: 1 }, 202],
  ["an error of another shape", { message: "no" }, 402],
])("an answer with %s is found", async (_what, answer, status) => {
  const request = new Request("https://eu.test/admin/v1/orgs/x/credits", { method: "POST" });
  await expect(checkDocumented(request, Response.json(answer, { status }))).rejects.toThrow(
    "scripts/openapi",
  );
});
