import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";

/** Operators' calls that only the CLI offers, with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "GET /admin/v1/orgs/{id}/keys/{key_id}": "the list of keys has all of each",
  "POST /admin/v1/orgs/{id}/purchases/{purchase_id}/check": "the CLI asks for one purchase",
  "GET /admin/v1/orgs/{id}/alerts": "alerts are events, which are listed",
  "GET /admin/v1/lost-organizations": "restoring one is a command of the CLI, which lists them",
  "GET /admin/v1/orgs/{id}/pauses": "pauses are set with the CLI",
  "POST /admin/v1/orgs/{id}/pauses": "the same",
  "DELETE /admin/v1/orgs/{id}/pauses/{pause_id}": "the same",
  "GET /admin/v1/merchants": "merchants are set up with the CLI",
  "POST /admin/v1/merchants": "the same",
  "POST /admin/v1/merchants/{name}/rotate": "the same",
  "DELETE /admin/v1/merchants/{name}": "the same",
  "POST /admin/v1/orgs/{id}/settle": "takes a line of the log, which a terminal has",
};

const PAGES = path.join(import.meta.dirname, "../../src/console/browser/pages");
const SOURCE = readdirSync(PAGES)
  .map((name) => readFileSync(path.join(PAGES, name), "utf8"))
  .join("\n");
const CALLED = new Set(
  [...SOURCE.matchAll(/"([A-Z]+ \/admin\/v1[^"]*)"/g)].map(([, call]) => call),
);

/**
 * Calls for which a page checks the operator's role, either directly or in the last column of a
 * table of actions.
 */
const ASKED = new Set(
  [...SOURCE.matchAll(/(?:\bmay\(|\buseMay\(\)\(|…", )"([A-Z]+ \/admin\/v1[^"]*)"/g)].map(
    ([, call]) => call,
  ),
);

it("the console has a button for every change of the operators' API", () => {
  const changing = [...CALLED].filter((call) => !call?.startsWith("GET "));
  expect(changing.filter((call) => !ASKED.has(call))).toEqual([]);
  expect(changing.length).toBeGreaterThan(20);
});

it("the console uses every call of the operators' API, or lists a reason not to", () => {
  const all = OPERATOR_ROUTES.map(
    ({ method, path: at }) => `${method} ${at.replaceAll(/:(\w+)/g, "{$1}")}`,
  );
  expect(all.filter((call) => !CALLED.has(call)).toSorted()).toEqual(
    Object.keys(ELSEWHERE).toSorted(),
  );
});
