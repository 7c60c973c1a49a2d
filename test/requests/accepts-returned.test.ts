import { beforeAll, describe, expect, it, vi } from "vitest";
import { parseJson } from "../../src/shared/exact-json.ts";
import { PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { mockNetwork } from "../providers/adapter-kit.ts";
import { callEndpoint, ENDPOINT_CLIENTS } from "./endpoint-clients.ts";
import type { EndpointClient } from "./endpoint-clients.ts";

/** A response with unusual content of several providers in one message. */
const DIGITS = '{"b":2512292042121000001,"1":1.0,"0":{"z":-0,"2":1e3}}';
const CUT = '{"path": "/data/x", "text": "abc';
const ARGUMENTS = [CUT, "", "[1]", DIGITS, "null"];
const SIGNATURE = "c2lnbmF0dXJlLTE=";
const calls = ARGUMENTS.map((args, at) => ({
  id: at < 2 ? "call_0" : `functions.get_weather:${at}`,
  type: "function",
  function: { name: at === 2 ? "get.weather ö" : "get_weather", arguments: args },
  extra_content: at === 3 ? { google: { thought_signature: SIGNATURE } } : undefined,
}));
const MESSAGE = {
  role: "assistant",
  content: null,
  reasoning_content: "THOUGHT",
  reasoning_details: [{ type: "reasoning.encrypted", data: SIGNATURE, index: 0 }],
  tool_calls: calls,
};
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const REPLY: RawReply = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: MESSAGE, finish_reason: "tool_calls" }],
    usage: USAGE,
  }),
};

const named = (name: string): ChatProvider => {
  const found = PROVIDERS.find((provider) => provider.name === name);
  if (found === undefined) throw new Error(`no provider ${name}`);
  return found;
};

type Item = Readonly<Record<string, unknown>>;
type Turn = { readonly output: readonly Item[]; readonly results: readonly Item[] };

/**
 * Returns the response as its client sends it back, with a result for each call. Parses it as text,
 * so that no digit is lost.
 */
function turnOf({ name }: EndpointClient, text: string): Turn {
  const body = parseJson(text) as {
    choices?: { message: Item }[];
    output?: Item[];
    content?: Item[];
  };
  if (name === "chat") {
    const message = body.choices?.[0]?.message ?? {};
    const ids = (message["tool_calls"] as { id: string }[]).map(({ id }) => id);
    return {
      output: [message],
      results: ids.map((id) => ({ role: "tool", tool_call_id: id, content: "ok" })),
    };
  }
  if (name === "responses") {
    const ids = (body.output ?? []).flatMap(({ call_id: id }) =>
      typeof id === "string" ? [id] : [],
    );
    return {
      output: body.output ?? [],
      results: ids.map((id) => ({ type: "function_call_output", call_id: id, output: "ok" })),
    };
  }
  const ids = (body.content ?? []).filter(({ type }) => type === "tool_use").map(({ id }) => id);
  return {
    output: [{ role: "assistant", content: body.content }],
    results: [
      {
        role: "user",
        content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "ok" })),
      },
    ],
  };
}

/**
 * Returns the arguments in a provider's request, which sends them as an object or as the text of
 * one.
 */
function argumentsIn(sent: string): readonly string[] {
  const texts = [...sent.matchAll(/"arguments":("(?:[^"\\]|\\.)*")/g)].map(([, literal]) =>
    String(JSON.parse(literal ?? '""')),
  );
  return texts;
}

describe.each(
  Object.values(ENDPOINT_CLIENTS).map((endpoint) => [endpoint.name, endpoint] as const),
)("a response with malformed fields at %s", (_name, endpoint) => {
  let key = "";
  beforeAll(async () => {
    ({ key } = await openOrganization({ credits: 1_000_000_000 }));
  });

  const others = PROVIDERS.filter(
    ({ name }) => endpoint.name !== "responses" || !name.startsWith("openai"),
  );
  it.each(others.map((second) => [second.name, second] as const))(
    "can occur twice in the history that a later request sends to a provider with the format %s",
    async (__, second) => {
      const first = named("openrouter");
      const options = { turns: [endpoint.user("Weather?")], tools: true, thinks: true };
      mockNetwork(REPLY);
      const firstResult = await callEndpoint(endpoint, { key, providers: [first], options });
      expect([firstResult.status, firstResult.text]).toEqual([200, expect.any(String)]);
      vi.restoreAllMocks();
      const { output, results } = turnOf(endpoint, firstResult.text);
      const turn = [...output, ...results];
      const history = [endpoint.user("Weather?"), ...turn, endpoint.user("And?"), ...turn];
      const requests = mockNetwork(second.chat.text.json);
      const got = await callEndpoint(endpoint, {
        key,
        providers: [second],
        options: { ...options, turns: history },
      });
      vi.restoreAllMocks();
      expect([got.status, got.text]).toEqual([200, expect.any(String)]);
      const last = requests.at(-1);
      if (last === undefined) throw new Error("no provider was called");
      const ids = second.idsIn(last.json);
      expect(new Set(ids.calls).size, last.text).toBe(2 * calls.length);
      expect(new Set(ids.results)).toEqual(new Set(ids.calls));
      for (const id of ids.calls) expect(String(id)).toMatch(second.idPattern);
      for (const args of argumentsIn(last.text)) {
        expect(JSON.parse(args)).toEqual(expect.any(Object));
        expect(Array.isArray(JSON.parse(args))).toBe(false);
      }
      expect(last.text).toContain("invalid_arguments");
      const isValue = last.text.includes(DIGITS);
      expect(isValue || last.text.includes(JSON.stringify(DIGITS).slice(1, -1))).toBe(true);
    },
  );
});
