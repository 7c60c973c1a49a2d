import { beforeAll, describe, expect, it, vi } from "vitest";
import { TRIED_PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { ChatScenarios, RawReply } from "../fixtures/reply-scenarios.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { mockNetwork, splitBytes } from "../providers/adapter-kit.ts";
import { IS_LONG } from "../effort.ts";
import { callEndpoint, balanceOf, readResponse, ENDPOINT_CLIENTS } from "./endpoint-clients.ts";
import type {
  EndpointClient,
  EndpointResult,
  ReadResponse,
  RequestOptions,
} from "./endpoint-clients.ts";

/**
 * Every protocol at the endpoints with other formats, with all kinds of output, as JSON and
 * streamed.
 */
const CREDITS = 1_000_000_000;
/**
 * Returns the protocols for an endpoint. OpenAI answers its own format natively, which is a
 * separate row.
 */
function providersOf(endpoint: EndpointClient): ChatProvider[] {
  return TRIED_PROVIDERS.filter(({ name }) => endpoint.name !== "responses" || name !== "openai");
}

const FORMS = [
  ["JSON", false],
  ["a stream", true],
] as const;
const CLIENTS = [ENDPOINT_CLIENTS.responses, ENDPOINT_CLIENTS.messages];
/**
 * A long run combines each protocol with each endpoint in both forms. Otherwise, each has one
 * endpoint and one form in turn.
 */
const CASES = CLIENTS.flatMap((endpoint, endpointIndex) =>
  providersOf(endpoint).flatMap((provider) => {
    const turn = TRIED_PROVIDERS.indexOf(provider);
    if (!IS_LONG && turn % CLIENTS.length !== endpointIndex) return [];
    const form = Math.floor(turn / CLIENTS.length) % FORMS.length;
    const forms = FORMS.filter((__, at) => IS_LONG || at === form);
    return [{ name: endpoint.name, format: provider.name, endpoint, provider, forms }];
  }),
);
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.each(CASES)(
  "the endpoint $name with a provider in the format $format",
  ({ endpoint, provider, forms }) => {
    let key = "";
    beforeAll(async () => {
      ({ key } = await openOrganization({ credits: CREDITS }));
    });

    const send = (options: Partial<RequestOptions>): Promise<EndpointResult> =>
      callEndpoint(endpoint, {
        key,
        providers: [provider],
        options: { turns: [endpoint.user("Hi")], ...options },
      });

    async function read(name: keyof ChatScenarios, stream: boolean): Promise<ReadResponse> {
      mockNetwork(provider.chat[name][stream ? "stream" : "json"]);
      const got = await send({
        stream,
        tools: name.startsWith("tool"),
        schema: name === "schema",
        thinks: name === "reasoning",
      });
      return readResponse(endpoint, got, stream);
    }

    describe.each(forms)("a response as %s", (_, stream) => {
      it("contains text, finish reason and usage with cached tokens", async () => {
        expect(await read("text", stream)).toMatchObject({
          text: "Hello, 世界!",
          end: "stop",
          calls: [],
          used: [12, provider.tellsCached ? 4 : 0, 3],
        });
      });

      it("contains one tool call after a text, and parallel tool calls with unique IDs", async () => {
        const one = await read("tool", stream);
        expect(one).toMatchObject({
          end: "calls",
          calls: [{ name: "get_weather", input: { city: "Paris" } }],
        });
        vi.restoreAllMocks();
        const { calls } = await read("tools", stream);
        expect(calls.map(({ name, input }) => [name, input])).toEqual([
          ["get_weather", { city: "Paris" }],
          ["get_weather", { city: "Rome" }],
          ["get_time", {}],
        ]);
        expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
      });

      it("contains JSON that matches a JSON schema", async () => {
        const { text } = await read("schema", stream);
        expect(JSON.parse(text)).toEqual({ city: "Paris", days: 3 });
      });

      it("ends the output at the output cap", async () => {
        expect(await read("length", stream)).toMatchObject({ text: "Hel", end: "length" });
      });

      it("reports a refusal", async () => {
        mockNetwork(provider.chat.refusal[stream ? "stream" : "json"]);
        const got = await send({ stream });
        const ending = got.status === 400 ? "400" : readResponse(endpoint, got, stream).end;
        expect(ending).toBe(provider.refusesBy === "status" ? "400" : "refusal");
      });

      it("contains reasoning, which the next request returns to the provider unchanged", async () => {
        const response = await read("reasoning", stream);
        expect(response).toMatchObject({ thought: "Let me think.", text: "42", end: "stop" });
        vi.restoreAllMocks();
        const turns = [endpoint.user("Hi"), ...response.turn, endpoint.user("And?")];
        const sent = await sentAt(endpoint, turns);
        expect(keptIn(sent)).toEqual(keptIn(await sentAtChat()));
      });

      it("contains an uncharged error in the endpoint's format if the provider fails before the first byte", async () => {
        mockNetwork(stream ? provider.failures.errorFirst : DOWN);
        const { status, text } = await send({ stream });
        expect(status).toBeGreaterThanOrEqual(500);
        expect(JSON.parse(text)).toHaveProperty("error.message");
        vi.restoreAllMocks();
        expect(await spentBy(() => Promise.resolve())).toBe(0);
      });
    });

    it.each(["errorMid", "cut"] as const)(
      "ends in the endpoint's stream format after a mid-stream failure: %s",
      async (name) => {
        const spent = await spentBy(async () => {
          mockNetwork(provider.failures[name], splitBytes);
          const { status, text } = await send({ stream: true });
          expect(status).toBe(200);
          expect(text).toMatch(endpoint.broken);
          expect(text).not.toContain(CANARY.text);
        });
        expect(spent).toBe(0);
      },
    );

    it("forwards an image as an image", async () => {
      const calls = mockNetwork(provider.chat.text.json);
      const turns = [endpoint.user("Look", `data:image/png;base64,${PIXEL}`)];
      readResponse(endpoint, await send({ turns }));
      expect(calls.at(-1)?.text).toContain(PIXEL);
    });

    it.runIf(endpoint.name === "responses").each(["parts", "a text of parts"])(
      "forwards a tool's image, given as %s, as an image instead of text",
      async (form) => {
        const calls = mockNetwork(provider.chat.text.json);
        const call = { id: "call_12345", name: "get_weather", input: {} };
        const parts = [{ type: "input_image", image_url: `data:image/png;base64,${PIXEL}` }];
        const output = form === "parts" ? parts : JSON.stringify(parts);
        const result = { type: "function_call_output", call_id: call.id, output };
        const turns = [endpoint.user("Look"), ...endpoint.called([call]), result];
        readResponse(endpoint, await send({ turns, tools: true }));
        const fields = fieldsWith(PIXEL, JSON.parse(calls.at(-1)?.text ?? "null"));
        expect(fields).toHaveLength(1);
        expect(fields[0]).toMatch(/^(?:url|image_url|data|bytes)$/);
      },
    );

    async function spentBy(act: () => Promise<void>): Promise<number> {
      const before = await balanceOf(key);
      await act();
      vi.restoreAllMocks();
      return before - (await balanceOf(key));
    }

    async function sentAt(at: EndpointClient, turns: readonly object[]): Promise<string> {
      const calls = mockNetwork(provider.chat.text.json);
      const options = { turns, thinks: true };
      readResponse(at, await callEndpoint(at, { key, providers: [provider], options }));
      vi.restoreAllMocks();
      return calls.at(-1)?.text ?? "";
    }

    /** Returns the request of a chat client that sends the conversation back. */
    async function sentAtChat(): Promise<string> {
      const { chat } = ENDPOINT_CLIENTS;
      mockNetwork(provider.chat.reasoning.json);
      const options = { turns: [chat.user("Hi")], thinks: true };
      const response = readResponse(
        chat,
        await callEndpoint(chat, { key, providers: [provider], options }),
      );
      vi.restoreAllMocks();
      return sentAt(chat, [chat.user("Hi"), ...response.turn, chat.user("And?")]);
    }
  },
);

/** Returns the names of fields whose text contains this text. */
function fieldsWith(text: string, sent: unknown, name = ""): string[] {
  if (typeof sent === "string") return sent.includes(text) ? [name] : [];
  if (typeof sent !== "object" || sent === null) return [];
  return Object.entries(sent).flatMap(([key, value]) => fieldsWith(text, value, key));
}

const DOWN: RawReply = { status: 503, headers: {}, body: "" };

/** Returns the signatures and encrypted texts in a request, in order. */
function keptIn(sent: string): string[] {
  const fields =
    /"(?:signature|thoughtSignature|encrypted_content|data|redactedContent)":"([^"]+)"/g;
  return [...sent.matchAll(fields)].map(([, kept]) => kept ?? "");
}
