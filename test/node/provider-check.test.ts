import type { ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockRequest, MockProvider } from "../fixtures/openai-mock.ts";
import { CHUNK, USAGE } from "../fixtures/openai-replies.ts";
import { main } from "../../scripts/provider-check.ts";
import { endOf } from "../../scripts/program.ts";
import { runInProcess } from "./support/in-process.ts";
import { startProgram } from "./support/program.ts";

const KEY = "sk-the-operators-own-key-0123456789";
const CHECKS = "chat stream tools json schema embeddings no such model wrong key";

let mock: MockProvider;
beforeAll(async () => {
  mock = await startMockProvider();
});
afterEach(() => mock.script(null));
afterAll(() => mock.close());

const variables = () => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: mock.url });

async function check(args: readonly string[], more: Record<string, string> = {}) {
  const { code, out, err } = await runInProcess(() => endOf(args, main), {
    ...variables(),
    ...more,
  });
  expect(out + err).not.toContain(KEY);
  return { code, output: out + err };
}

type Body = { readonly messages?: readonly { role: string }[]; readonly response_format?: object };

/** A provider that passes all checks. `over` changes one response. */
function behaves(over: (request: MockRequest, response: ServerResponse) => boolean = () => false) {
  mock.script((request, response) => {
    if (over(request, response)) return true;
    const { messages, response_format: format } = request.json as Body;
    if (request.headers.authorization !== `Bearer ${KEY}`) return reply(response, 401, wrongKey());
    if (request.json["model"] === "turnpike-no-such-model") {
      return reply(response, 404, { error: { message: "no such model", code: "model_not_found" } });
    }
    if (messages?.at(-1)?.role === "tool") return sendMessage(response, "It is 21 °C in Paris.");
    if (format !== undefined) return sendMessage(response, '{"city":"Paris"}');
    if (request.json["tools"] === undefined) return false;
    const call = { name: "get_weather", arguments: '{"city":"Paris"}' };
    return sendMessage(response, null, [{ id: "call_1", type: "function", function: call }]);
  });
}

const wrongKey = () => ({
  error: { message: `Incorrect API key: ${KEY}`, code: "invalid_api_key" },
});

function sendMessage(
  response: ServerResponse,
  content: string | null,
  calls?: readonly object[],
): true {
  const message = { role: "assistant", content, ...(calls && { tool_calls: calls }) };
  const choice = { index: 0, message, finish_reason: calls ? "tool_calls" : "stop" };
  return reply(response, 200, {
    ...CHUNK,
    object: "chat.completion",
    choices: [choice],
    usage: USAGE,
  });
}

function reply(response: ServerResponse, status: number, body: object): true {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  return true;
}

it("provider-check passes every check of a provider that responds as its adapter expects", async () => {
  behaves();
  const program = startProgram(["scripts/provider-check.ts", "openai"], variables());
  const code = await program.ended;
  const output = program.output();
  expect(output).not.toContain(KEY);
  expect(output).toContain("7 passed, 0 failed");
  for (const name of CHECKS.match(/no such model|wrong key|json schema|\w+/g) ?? []) {
    expect(output).toMatch(new RegExp(`^pass {2}${name}`, "m"));
  }
  expect(code).toBe(0);
});

it("provider-check reports a difference along with the HTTP exchange, without the key", async () => {
  behaves((request, response) => {
    if (request.json["tools"] === undefined) return false;
    return sendMessage(response, `I have no tools, ${KEY}`);
  });
  const { code, output } = await check(["openai", "--region", "us"]);
  expect(output).toMatch(/^FAIL {2}tools +expected a tool call, not .*I have no tools/m);
  expect(output).toMatch(/^ {6}> POST http:\S+\/chat\/completions \{"model":/m);
  expect(output).toMatch(/^ {6}< 200 .*I have no tools, \[key\]/m);
  expect(output).toContain("6 passed, 1 failed");
  expect(code).toBe(1);
});

it.each([
  ["missing usage", { usage: undefined }, "chat", "expected usage, but the response has none"],
  ["a response of another kind", { choices: [] }, "chat", "bad_answer"],
])("provider-check fails for %s", async (_, over, name, words) => {
  behaves((request, response) => {
    const message = { role: "assistant", content: "ready" };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    if (request.json["tools"] !== undefined || request.json["stream"] === true) return false;
    if (request.path !== "/v1/chat/completions") return false;
    return reply(response, 200, { ...CHUNK, choices, usage: USAGE, ...over });
  });
  const { code, output } = await check(["openai", "--json"]);
  const { findings } = JSON.parse(output.slice(0, output.indexOf("\n"))) as {
    findings: { name: string; problem: string | null }[];
  };
  expect(findings.find((finding) => finding.name === name)?.problem).toContain(words);
  expect(code).toBe(1);
});

it("provider-check names the variable of a missing key, and lists the known providers and models", async () => {
  expect(await check(["openai"], { OPENAI_API_KEY: "" })).toEqual({
    code: 1,
    output: "error: openai needs OPENAI_API_KEY in the environment, with the region's value.\n",
  });
  const unknown = await check(["nobody"]);
  expect(unknown.code).toBe(1);
  expect(unknown.output).toMatch(/no provider "nobody"\. Known: openai/);
  const model = await check(["openai", "--model", "openai/gpt-99"]);
  expect(model.code).toBe(2);
  expect(model.output).toMatch(
    /does not sell "openai\/gpt-99" for chat here\. It sells: openai\/gpt-/,
  );
  expect((await check(["openai", "--region", "mars"])).code).toBe(2);
  expect(await check(["openrouter"], { OPENROUTER_API_KEY: "sk-or-1" })).toEqual({
    code: 1,
    output: "error: no model has a route to openrouter. Add one to MODELS.\n",
  });
});
