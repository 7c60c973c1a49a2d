import { env } from "cloudflare:workers";
import { createExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { bindingsFor, TRIED_PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { effortFor } from "../effort.ts";
import { mockNetwork } from "../providers/adapter-kit.ts";
import type { SentRequest } from "../providers/adapter-kit.ts";

/**
 * A conversation with tool calls starts at one provider and continues at another. A long run
 * combines all pairs. Otherwise, each provider continues at every fourth one.
 */
const APART = effortFor(4, 1);
let key: string;
beforeAll(async () => {
  ({ key } = await openOrganization({ credits: 1_000_000_000 }));
});

type Message = { readonly role: string; readonly tool_calls?: readonly { readonly id: string }[] };

const QUESTION = { role: "user", content: "The weather in Paris and Rome, and the time?" };
const TOOLS = ["get_weather", "get_time"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } },
}));
const DOWN: RawReply = { status: 503, headers: {}, body: "" };

/** Sends a request to the providers as routes of one model. Each gets the next response. */
async function send(
  providers: readonly ChatProvider[],
  messages: readonly unknown[],
  replies: readonly RawReply[],
): Promise<{ message: Message; requests: readonly SentRequest[]; served: string | null }> {
  const bindings = { ...env, ...bindingsFor(providers) };
  const requests = mockNetwork(replies);
  const response = await app.fetch(
    new Request("https://eu.test/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test/chat", messages, tools: TOOLS }),
    }),
    bindings,
    createExecutionContext(),
  );
  const { choices } = await response.json<{ choices?: readonly { message: Message }[] }>();
  const message = choices?.[0]?.message;
  if (message === undefined) throw new Error(`no answer: ${response.status}`);
  return { message, requests, served: response.headers.get("x-route") };
}

describe.each(TRIED_PROVIDERS.map((provider) => [provider.name, provider] as const))(
  "a conversation started at the provider %s",
  (_, first) => {
    let firstResponse: Awaited<ReturnType<typeof send>>;
    beforeAll(async () => {
      firstResponse = await send([first], [QUESTION], [first.chat.tools.json]);
      vi.restoreAllMocks();
    });

    const turn = TRIED_PROVIDERS.indexOf(first);
    const seconds = TRIED_PROVIDERS.filter((__, at) => (at + turn) % APART === 0);
    it.each(seconds.map((provider) => [provider.name, provider] as const))(
      "continues at %s after a failure, with each tool result next to its call",
      async (__, second) => {
        const ids = (firstResponse.message.tool_calls ?? []).map((call) => call.id);
        expect(ids).toHaveLength(3);
        const results = ids.map((id, at) => ({
          role: "tool",
          tool_call_id: id,
          content: `result ${at}`,
        }));
        // Each continues a separate conversation, because otherwise it would use the route of the
        // previous one.
        const question = {
          ...QUESTION,
          content: `${QUESTION.content} ${first.name}, ${second.name}`,
        };
        const history = [question, firstResponse.message, ...results];
        const isSame = first.id === second.id;
        const { requests, served } = await send(
          isSame ? [second] : [first, second],
          history,
          isSame ? [second.chat.text.json] : [DOWN, second.chat.text.json],
        );
        expect(served).toContain(`${second.id}:`);
        const last = requests.at(-1);
        if (last === undefined) throw new Error("no provider was called");
        const sent = second.idsIn(last.json);
        expect(new Set(sent.calls).size).toBe(3);
        expect(sent.results).toEqual(sent.calls);
        for (const id of sent.calls) expect(String(id)).toMatch(second.idPattern);
      },
    );
  },
);
