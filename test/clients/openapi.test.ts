import { execFile } from "node:child_process";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { serveStripe } from "../../scripts/dev-stripe.ts";
import { openApiText } from "../../scripts/openapi.ts";
import { apiTypes } from "../../scripts/site/api-types.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import examples from "../../scripts/openapi/examples.json" with { type: "json" };
import { gateway } from "./gateway.ts";
import { programText } from "./openapi-client.ts";
import type { Document, Example, Program } from "./openapi-client.ts";
import { AGREEMENT, NOT_JSON } from "./openapi-types.ts";

const run = promisify(execFile);
const installed = (file: string): string => path.join(import.meta.dirname, "node_modules", file);
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-openapi-"));
afterAll(() => removeDirectory(directory));
const stripe = await serveStripe();
afterAll(() => stripe.close());
const at = gateway({
  STRIPE_SECRET_KEY: "sk_test_of_the_clients",
  STRIPE_WEBHOOK_SECRETS: "whsec_of_the_clients",
  STRIPE_BASE_URL: stripe.url,
});

/**
 * Returns calls of every operation with the requests and responses that the contract tests
 * recorded.
 */
function callsText(): string {
  const { paths } = JSON.parse(text) as Document;
  const calls = Object.entries(examples as Record<string, Example>).map(
    ([name, { request, answer }]) => {
      const [method = "", at = ""] = name.split(" ");
      const hasBody = paths[at]?.[method.toLowerCase()]?.requestBody !== undefined;
      const body = hasBody ? JSON.stringify(request) : "undefined";
      const all = `<${JSON.stringify(name)}>`;
      return `typedCall${all}(${body}, ${JSON.stringify(answer)});`;
    },
  );
  const head = `import type { Answer, Body } from "./agreement";
declare function typedCall<N extends string>(body: Body<N>, answer: Answer<N>): void;`;
  return `${head}\n${calls.join("\n")}\n`;
}

/**
 * Compiles a folder's files with openapi-typescript's version of TypeScript. Returns the errors.
 */
async function compiled(): Promise<string> {
  try {
    await run(process.execPath, [installed("typescript/bin/tsc"), "-p", directory]);
    return "";
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

let text = "";
beforeAll(async () => {
  text = await openApiText();
  const document = path.join(directory, "openapi.json");
  writeFileSync(document, text);
  const client = path.join(directory, "openapi.d.ts");
  await run(process.execPath, [
    installed("openapi-typescript/bin/cli.js"),
    document,
    "--default-non-nullable=false",
    "-o",
    client,
  ]);
  writeFileSync(path.join(directory, "types.ts"), apiTypes(text));
  writeFileSync(path.join(directory, "agreement.ts"), AGREEMENT);
  writeFileSync(path.join(directory, "calls.ts"), callsText());
  // The program finds openapi-fetch there.
  symlinkSync(installed(""), path.join(directory, "node_modules"));
  const pause = {
    ...examples["POST /v1/pauses"],
    request: { scope: "organization", reason: "a test" },
  };
  // The recorded member exists only in the recording.
  const allExamples = { ...examples, "POST /v1/pauses": pause };
  const program = programText(JSON.parse(text) as Document, allExamples);
  writeFileSync(path.join(directory, "program.ts"), program);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    noErrorTruncation: true,
    module: "esnext",
    moduleResolution: "bundler",
    target: "es2022",
    types: [],
  };
  writeFileSync(path.join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions }));
});

it("openapi-typescript's types match the console's types and recorded responses", async () => {
  expect(await compiled()).toBe("");
});

it("openapi-fetch calls every customer operation, and gets the documented responses", async () => {
  const ids = new Map([["/v1/models", "smart"]]);
  const filled = (parameter: string, of: string): string =>
    ids.get(of.split(`/{${parameter}`)[0] ?? "") ?? "missing";
  const { callsOf } = (await import(path.join(directory, "program.ts"))) as Program;
  const { checkDocumented } = (await import("../contract/documented.ts" as string)) as {
    checkDocumented: (request: Request, response: Response) => Promise<Response>;
  };
  ids.set("/v1/members", await allowHolds());
  const options = {
    baseUrl: at.origin,
    headers: { authorization: `Bearer ${at.key}` },
    fetch: async (request: Request) => checkDocumented(request, await fetch(request)),
  };
  const statuses = new Map<string, number>();
  for (const [name, call] of Object.entries(callsOf(options, filled))) {
    if (NOT_JSON.includes(name)) continue;
    const { data, response } = name === DELIVERIES ? await someDelivery(call) : await call();
    statuses.set(name, response.status);
    remember(ids, name, { data, response });
  }
  const { paths } = JSON.parse(text) as Document;
  const documented = Object.entries(paths).flatMap(([of, methods]) =>
    /^\/(?:admin|console)\//.test(of)
      ? []
      : Object.keys(methods).map((one) => `${one.toUpperCase()} ${of}`),
  );
  const inJson = documented.filter((one) => !NOT_JSON.includes(one));
  expect([...statuses.keys()].toSorted()).toEqual(inJson.toSorted());
  const refused = [...statuses].filter(([, status]) => status >= 300);
  expect(refused).toEqual([
    ["GET /v1/generation", 400], // the release is called without the hold's ID
    ["POST /v1/holds/{id}/release", 409], // the hold was captured before
  ]);
});

/** Allows the key to place holds, and returns its member. */
async function allowHolds(): Promise<string> {
  const headers = { authorization: `Bearer ${at.key}`, "content-type": "application/json" };
  const own = await fetch(new URL("/v1/key", at.origin), { headers });
  const { id, member_id: memberId } = (await own.json()) as { id: string; member_id: string };
  const body = JSON.stringify({ may_hold: true });
  const changed = await fetch(new URL(`/v1/keys/${id}`, at.origin), {
    method: "PATCH",
    headers,
    body,
  });
  expect(changed.status).toBe(200);
  return memberId;
}

/** Keeps the IDs in a response under the path with their parameter. */
const DELIVERIES = "GET /v1/webhooks/{id}/deliveries";
type Call = ReturnType<Program["callsOf"]>[string];
type Deliveries = { readonly deliveries: readonly { readonly id: string }[] };

/** Waits until the list contains a delivery, because the webhook was created just before. */
function someDelivery(call: Call): ReturnType<Call> {
  return vi.waitFor(
    async () => {
      const answered = await call();
      expect((answered.data as Deliveries).deliveries).not.toEqual([]);
      return answered;
    },
    { timeout: 30_000, interval: 100 },
  );
}

function remember(
  ids: Map<string, string>,
  name: string,
  { data, response }: { data?: unknown; response: Response },
): void {
  const [method, of = ""] = name.split(" ");
  ids.set("/v1/orgs", response.headers.get("openai-organization") ?? "");
  if (name === DELIVERIES) ids.set(of, (data as Deliveries).deliveries[0]?.id ?? "");
  if (method !== "POST" || of.includes("{")) return;
  const { id, external_id: endUser } = data as { id?: string; external_id?: string };
  const createdId = endUser ?? id;
  if (createdId !== undefined)
    ids.set(of === "/v1/chat/completions" ? "/v1/generations" : of, createdId);
}

it("the type check with openapi-typescript's types finds a renamed field of the OpenAPI document", async () => {
  const renamed = text.replaceAll('"available_micro"', '"left_micro"');
  expect(renamed).not.toBe(text);
  writeFileSync(path.join(directory, "types.ts"), apiTypes(renamed));
  expect(await compiled()).toContain("GET /v1/balance answer");
});
