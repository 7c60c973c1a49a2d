import { expect, it } from "vitest";
import { OPERATIONS } from "../../scripts/openapi/operations.ts";
import examples from "../../scripts/openapi/examples.json";
import { app } from "../../src/app.ts";
import { KEY_ROUTES } from "../../src/routes.ts";
import { checkDocumented, DOCUMENT } from "./documented.ts";

/** Operations whose response isn't JSON. */
const NO_JSON = new Set(["GET /admin/v1/metrics"]);
/** Operations that require a person or a link. test/people checks their responses. */
const PEOPLE_ROUTES =
  /console\/api\/people|\/invitations|\/domains|\/company-issuer|^DELETE \/admin\/v1\/orgs\/\{id\}$/;
const documented = OPERATIONS.map(({ name }) => name);
const { paths } = DOCUMENT;

it("the OpenAPI document lists exactly the routes below /v1, /admin/v1 and /console/api/people", () => {
  const routes = app.routes.filter(({ method }) => method !== "ALL");
  const names = routes
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}")}`)
    .filter(
      (name) => /^\w+ \/(?:(?:admin\/)?v1|console\/api\/people)\//.test(name) && !NO_JSON.has(name),
    );
  expect(documented.toSorted()).toEqual([...new Set(names)].toSorted());
});

/**
 * Operations that require a lost wallet or a lost charge. The contract tests check their responses.
 */
const NO_EXAMPLE = new Set([
  "POST /admin/v1/orgs/{id}/settle",
  "POST /admin/v1/orgs/{id}/rebuild-wallet",
  "GET /v1/exports/focus", // a CSV file
  "POST /v1/audio/speech", // an audio file
]);

it.each(documented)(
  "the OpenAPI document describes %s with a summary, roles, errors and a recorded response",
  async (name) => {
    const [method = "", path = ""] = name.split(" ");
    const operation = JSON.stringify(paths[path]?.[method.toLowerCase()]);
    expect(operation).toMatch(
      /"summary":"[^"]{5,}".*Allowed: \w+.*"400":.*"401":.*"500":.*"503":/s,
    );
    if (NO_EXAMPLE.has(name) || PEOPLE_ROUTES.test(name)) return;
    const example = (examples as Record<string, { answer: unknown } | undefined>)[name];
    expect(example, "npm run openapi:examples").toBeDefined();
    const request = new Request(`https://eu.test${path.replaceAll(/[{}]/g, "")}`, { method });
    const status = Number(Object.keys(OPERATIONS[documented.indexOf(name)]?.answers ?? {}).at(-1));
    await checkDocumented(
      request,
      Response.json(example?.answer, { status, headers: headersOf(name) }),
    );
  },
);

/** Headers for every response. A missing one is an error. */
const COMMON_HEADERS = {
  "x-request-id": "req_1",
  "openai-organization": "o",
  "x-ratelimit-limit-requests": "60",
  "x-ratelimit-remaining-requests": "59",
  "x-ratelimit-reset-requests": "1m0s",
};
const RECEIPT = { "x-route": "sandbox:echo", "x-attempts": "1", "x-cost-micro": "1" };
const MESSAGES = {
  "request-id": "req_1",
  "anthropic-ratelimit-requests-limit": "60",
  "anthropic-ratelimit-requests-remaining": "59",
  "anthropic-ratelimit-requests-reset": "2026-11-23T00:00:00Z",
};

function headersOf(name: string): Record<string, string> {
  if (name.includes(" /admin/")) return { "x-request-id": "req_1" };
  const isPaid = KEY_ROUTES.some(
    (row) => row.reach === "paid" && `${row.method} ${row.path}` === name,
  );
  return {
    ...COMMON_HEADERS,
    ...(name.includes("/v1/messages") && MESSAGES),
    ...(isPaid && RECEIPT),
    ...(name === "POST /v1/credits/purchases" && { location: "/v1/credits/purchases/pur_1" }),
  };
}

const CREDITS = "POST /admin/v1/orgs/x/credits";
const CHAT = "POST /v1/chat/completions";
const id = { "x-request-id": "req_1" };
const MESSAGES_ID = { ...id, "request-id": "req_1" };
const error = { message: "no", type: "t", param: null, code: null };

const ERROR_HEADERS = { ...id, "x-should-retry": "false" };
const WRONG: Readonly<Record<string, readonly [string, number, unknown, Record<string, string>]>> =
  {
    "an undocumented field": [CREDITS, 200, { credits_micro: 1, credits: 1 }, id],
    "a missing field": [CREDITS, 200, {}, id],
    "an undocumented status": [CREDITS, 202, { credits_micro: 1 }, id],
    "an undocumented error": [CREDITS, 402, { error }, ERROR_HEADERS],
    "an error in another format": [CREDITS, 409, { message: "no" }, ERROR_HEADERS],
    "an undocumented header": [CREDITS, 200, { credits_micro: 1 }, { ...id, "x-route": "a:b" }],
    "a missing header": [CREDITS, 200, { credits_micro: 1 }, {}],
    "a header in another format": [CREDITS, 503, { error }, { ...id, "retry-after": "soon" }],
    "an error of Messages on a path of OpenAI's": [CHAT, 400, { type: "error", error }, id],
    "an error of OpenAI's on a path of Messages": [
      "POST /v1/messages",
      400,
      { error },
      MESSAGES_ID,
    ],
  };

it.each(Object.entries(WRONG))(
  "the OpenAPI check rejects a response with %s",
  async (_what, wrong) => {
    const [name, status, body, headers] = wrong;
    const [method = "", path = ""] = name.split(" ");
    const request = new Request(`https://eu.test${path}`, { method });
    await expect(
      checkDocumented(request, Response.json(body, { status, headers })),
    ).rejects.toThrow(/document/);
  },
);

it.each([
  ["text/event-stream", 'data: {"id":1}\n\n'],
  ["text/event-stream; charset=utf-8", 'data: {"error":{"message":"no"}}\n\n'],
])("the OpenAPI check stops a stream of type %s at an undocumented event", async (type, text) => {
  const request = new Request("https://eu.test/v1/chat/completions", { method: "POST" });
  const headers = { ...headersOf(CHAT), "content-type": type };
  const passed = await checkDocumented(request, new Response(text, { headers }));
  await expect(passed.text()).rejects.toThrow("not as the OpenAPI document says");
});

it("the OpenAPI check rejects a response with an undocumented content type", async () => {
  const request = new Request("https://eu.test/v1/balance");
  const answer = new Response("1", {
    headers: { ...COMMON_HEADERS, "content-type": "text/plain" },
  });
  await expect(checkDocumented(request, answer)).rejects.toThrow("text/plain");
});
