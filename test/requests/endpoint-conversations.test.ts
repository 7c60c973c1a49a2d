import { beforeAll, describe, expect, it, vi } from "vitest";
import { TRIED_PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { effortFor } from "../effort.ts";
import { mockNetwork } from "../providers/adapter-kit.ts";
import { callEndpoint, readResponse, ENDPOINT_CLIENTS } from "./endpoint-clients.ts";
import type { Call, EndpointClient } from "./endpoint-clients.ts";

/**
 * Conversations with three tool calls start at any endpoint and protocol, and continue at another
 * after a 503. A long run combines every pair of protocols once, at alternating endpoints.
 * providers-continue covers all pairs at the chat endpoint.
 */
const APART = effortFor(6, 1);
const ENDPOINTS = Object.values(ENDPOINT_CLIENTS);
const DOWN: RawReply = { status: 503, headers: {}, body: "" };
const QUESTION = "The weather in Paris and Rome, and the time?";

/** OpenAI answers its own format natively, which is a separate row. */
const speaks = (endpoint: EndpointClient, { name }: ChatProvider): boolean =>
  endpoint.name !== "responses" || name !== "openai";

const BEGUN = ENDPOINTS.flatMap((endpoint, endpointIndex) =>
  TRIED_PROVIDERS.filter((provider) => speaks(endpoint, provider)).map((first, at) => ({
    name: endpoint.name,
    format: first.name,
    endpoint,
    first,
    turn: at + endpointIndex,
  })),
);

describe.each(BEGUN)(
  "a conversation started at the endpoint $name with a provider in the format $format",
  ({ endpoint, first, turn }) => {
    let key = "";
    let calls: readonly Call[] = [];
    beforeAll(async () => {
      ({ key } = await openOrganization({ credits: 1_000_000_000 }));
      mockNetwork(first.chat.tools.json);
      const options = { turns: [endpoint.user(QUESTION)], tools: true };
      ({ calls } = readResponse(
        endpoint,
        await callEndpoint(endpoint, { key, providers: [first], options }),
      ));
      vi.restoreAllMocks();
    });

    it("continues with providers in other formats, and keeps each tool result next to its call", async () => {
      expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
      for (const [at, second] of TRIED_PROVIDERS.entries()) {
        if ((at + ENDPOINTS.indexOf(endpoint)) % ENDPOINTS.length !== 0) continue;
        if ((at + turn) % APART !== 0) continue;
        const next = ENDPOINTS[(turn + at) % ENDPOINTS.length] ?? endpoint;
        await goOn(speaks(next, second) ? next : endpoint, second);
      }
    });

    async function goOn(next: EndpointClient, second: ChatProvider): Promise<void> {
      if (!speaks(next, second)) return;
      const isSame = first.id === second.id;
      const { json } = second.chat.text;
      const requests = mockNetwork(isSame ? [json] : [DOWN, json]);
      const turns = [next.user(QUESTION), ...next.called(calls), ...next.results(calls)];
      const providers = isSame ? [second] : [first, second];
      const got = await callEndpoint(next, { key, providers, options: { turns, tools: true } });
      expect(readResponse(next, got).text, `${next.name} at ${second.name}`).toBe("Hello, 世界!");
      expect(got.route).toContain(`${second.id}:`);
      const last = requests.at(-1);
      vi.restoreAllMocks();
      if (last === undefined) throw new Error("no provider was called");
      const sent = second.idsIn(last.json);
      expect(new Set(sent.calls).size, last.text).toBe(3);
      expect(sent.results).toEqual(sent.calls);
      for (const id of sent.calls) expect(String(id)).toMatch(second.idPattern);
    }
  },
);

/**
 * Providers that return data which they need in the next request. Claude reads its own at every
 * provider.
 */
const CLAUDE = new Set(["anthropic", "bedrock"]);
const THINKERS = new Set([...CLAUDE, "openai, Responses"]);
const isOneMaker = (a: string, b: string): boolean => a === b || (CLAUDE.has(a) && CLAUDE.has(b));
const THOUGHT = [ENDPOINT_CLIENTS.messages, ENDPOINT_CLIENTS.responses].flatMap((endpoint) =>
  TRIED_PROVIDERS.filter(({ name }) => THINKERS.has(name)).map((first) => ({
    name: endpoint.name,
    format: first.name,
    endpoint,
    first,
  })),
);
/**
 * Fields that only the model's author can read: signatures and encrypted texts in every protocol.
 */
const SECRET = /"(?:signature|thoughtSignature|encrypted_content|data|redactedContent)":"([^"]+)"/g;
const secretsIn = (body: string): string[] =>
  [...body.matchAll(SECRET)].map(([, secret]) => secret ?? "");

it.each(THOUGHT)(
  "encrypted reasoning in the format $format, from the endpoint $name, is sent to no other provider",
  async ({ endpoint, first }) => {
    const { key } = await openOrganization({ credits: 1_000_000_000 });
    const send = async (at: ChatProvider, turns: readonly object[], reply: RawReply) => {
      const requests = mockNetwork(reply);
      const response = readResponse(
        endpoint,
        await callEndpoint(endpoint, { key, providers: [at], options: { turns, thinks: true } }),
      );
      vi.restoreAllMocks();
      // An object of an earlier file can call its own receiver meanwhile.
      return { response, sent: requests.findLast(({ text }) => text.includes("And?"))?.text ?? "" };
    };
    const firstResponse = await send(first, [endpoint.user(QUESTION)], first.chat.reasoning.json);
    const turns = [endpoint.user(QUESTION), ...firstResponse.response.turn, endpoint.user("And?")];
    const { sent: back } = await send(first, turns, first.chat.text.json);
    const secrets = secretsIn(back);
    expect(secrets.length).toBeGreaterThan(0);
    const others = TRIED_PROVIDERS.filter(({ name }) => !isOneMaker(first.name, name));
    for (const second of others.filter((other) => speaks(endpoint, other))) {
      const { response, sent } = await send(second, turns, second.chat.text.json);
      expect(response.text).toBe("Hello, 世界!");
      for (const secret of secrets) expect(sent, second.name).not.toContain(secret);
      expect(sent, second.name).not.toContain("tk1.");
    }
  },
);
