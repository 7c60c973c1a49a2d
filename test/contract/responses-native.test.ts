import { beforeAll, describe, expect, it, vi } from "vitest";
import type { AnyResponse } from "../protocols/responses/sdk-schemas.ts";
import { callItem, HELLO, responseObject, scenario } from "../fixtures/responses-replies.ts";
import { balanceOf, openAccount } from "./client.ts";
import {
  responseOf,
  postResponse,
  COST,
  HOST,
  INCLUDE,
  mockOpenAi,
  replied,
  SAID,
  SHOWN,
  streamedResponseOf,
} from "./responses-client.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const NO_PARAMETERS = { type: "object", properties: {} };

/** Removes IDs, which differ between two responses. */
const plain = ({ output }: AnyResponse) => output.map((item) => ({ ...item, id: "" }));

describe("POST /v1/responses at OpenAI", () => {
  it("sends the client's fields unchanged, and adds the gateway's own fields", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const picture = { type: "input_image", image_url: "https://x.test/a.png", detail: "original" };
    const fields = {
      instructions: "Be brief.",
      input: [
        { role: "developer", content: "D" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Go" }, picture] },
        { type: "message", role: "assistant", content: "Well", phase: "commentary", id: "msg_9" },
        {
          type: "function_call",
          id: "fc_9",
          call_id: "c1",
          name: "read",
          arguments: "{}",
          namespace: "files",
        },
        { type: "function_call_output", call_id: "c1", output: [picture] },
        { type: "web_search_call", id: "ws_1", status: "completed" },
        { type: "additional_tools", role: "developer", tools: [{ type: "custom", name: "late" }] },
      ],
      tools: [
        {
          type: "function",
          name: "f",
          parameters: { type: "object" },
          strict: true,
          defer_loading: true,
        },
        { type: "custom", name: "patch", format: { type: "text" } },
        { type: "namespace", name: "files", tools: [{ type: "function", name: "read" }] },
        { type: "web_search" },
      ],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "custom", name: "patch" }],
      },
      parallel_tool_calls: false,
      text: { format: { type: "json_object" }, verbosity: "low" },
      reasoning: { effort: "minimal", summary: "auto", context: "current_turn" },
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 1,
      max_output_tokens: 300,
      max_tool_calls: 3,
      truncation: "auto",
      store: true,
      metadata: { a: "b" },
      user: "ann",
      client_metadata: { x: "y" },
      unknown_field: 1,
      service_tier: "auto",
      safety_identifier: "client's own",
      prompt_cache_key: "slot",
    };
    const answer = await postResponse(key, fields, { bindings });
    const response = await responseOf(answer);
    expect(response).toMatchObject({
      metadata: { a: "b" },
      user: "ann",
      prompt_cache_key: "slot",
      tools: [{}, {}, { type: "namespace" }, { type: "web_search" }],
    });
    expect(answer.headers.get("x-dropped")).toBe(
      "max_tool_calls, unknown_field, tools.web_search, presence_penalty, input.web_search_call, temperature, top_p",
    );
    const [sent] = calls;
    expect(sent?.url).toBe(`${HOST}/responses`);
    const { safety_identifier, prompt_cache_key, ...body } = sent?.body ?? {};
    expect([safety_identifier, prompt_cache_key]).toEqual([
      expect.stringMatching(/^[\w-]{43}$/),
      expect.stringMatching(/^[\w-]{43}$/),
    ]);
    expect(body).toEqual({
      model: "gpt-6-sol",
      instructions: "Be brief.",
      input: [
        { type: "message", role: "developer", content: "D" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Go" }, picture] },
        { type: "message", role: "assistant", content: "Well", phase: "commentary" },
        {
          type: "function_call",
          call_id: "c1",
          name: "read",
          namespace: "files",
          arguments: "{}",
        },
        { type: "function_call_output", call_id: "c1", output: [picture] },
      ],
      tools: [
        { type: "function", name: "f", parameters: { type: "object" }, strict: true },
        { type: "custom", name: "patch", format: { type: "text" } },
        {
          type: "namespace",
          name: "files",
          description: "files",
          tools: [{ type: "function", name: "read", parameters: NO_PARAMETERS }],
        },
        { type: "custom", name: "late" },
      ],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "custom", name: "patch" }],
      },
      parallel_tool_calls: false,
      text: { format: { type: "json_object" }, verbosity: "low" },
      reasoning: { effort: "low", summary: "auto", context: "current_turn" },
      max_output_tokens: 300,
      truncation: "auto",
      store: false,
      stream: false,
      service_tier: "default",
      include: INCLUDE,
    });
  });

  it("renames namespaced tools and the tool choice for a model that supports no namespaces", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const fields = {
      input: [
        { role: "user", content: "Go" },
        { type: "function_call", call_id: "c1", name: "read", arguments: "{}", namespace: "files" },
        { type: "function_call_output", call_id: "c1", output: "done" },
      ],
      tools: [{ type: "namespace", name: "files", tools: [{ type: "function", name: "read" }] }],
    };
    const read = { type: "function", name: "read" };
    await responseOf(await postResponse(key, { model: "mock/old", ...fields }, { bindings }));
    await responseOf(await postResponse(key, { ...fields, tool_choice: read }, { bindings }));
    const flat = { type: "function", name: "files__read" };
    for (const { body } of calls) {
      expect(body["tools"]).toEqual([{ ...flat, parameters: NO_PARAMETERS }]);
      expect(body["input"]).toContainEqual({
        type: "function_call",
        call_id: "c1",
        name: "files__read",
        arguments: "{}",
      });
    }
    expect(calls.map(({ body }) => body["tool_choice"])).toEqual([undefined, flat]);
  });

  it("forwards sampling parameters and log probabilities if the model accepts them", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const include = ["message.output_text.logprobs"];
    const fields = { temperature: 0.5, top_logprobs: 2, include };
    await responseOf(await postResponse(key, { model: "mock/old", ...fields }, { bindings }));
    expect(calls[0]?.body).toMatchObject({
      temperature: 0.5,
      top_logprobs: 2,
      include: [...include, ...INCLUDE],
    });
    await responseOf(await postResponse(key, fields, { bindings }));
    expect(Object.keys(calls[1]?.body ?? {})).not.toContain("temperature");
    expect(calls[1]?.body["include"]).toEqual(INCLUDE);
  });

  it("sends OpenAI anonymous hashes that identify the customer and the end user", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const other = (await openAccount()).key;
    const fields = { prompt_cache_key: "slot", user: "ann" };
    await responseOf(await postResponse(key, fields, { bindings }));
    await responseOf(await postResponse(key, fields, { bindings }));
    await responseOf(await postResponse(other, fields, { bindings }));
    await responseOf(await postResponse(key, { user: "bob" }, { bindings }));
    const slots = calls.map(({ body }) => body["prompt_cache_key"]);
    const names = calls.map(({ body }) => body["safety_identifier"]);
    expect(slots[0]).toBe(slots[1]);
    expect(new Set(slots).size).toBe(3);
    expect(names[0]).toBe(names[1]);
    expect(new Set(names).size).toBe(3);
    expect(JSON.stringify(calls.map(({ body }) => body))).not.toMatch(/"(?:slot|ann|bob)"/);
  });

  it("returns the gateway's IDs and model name, and charges the exact usage", async () => {
    const { bindings } = mockOpenAi(() => replied(SAID.json));
    const before = await balanceOf(key);
    const answer = await postResponse(key, SHOWN, { bindings });
    const id = answer.headers.get("x-request-id")?.slice("req_".length);
    const response = await responseOf(answer);
    expect(response).toMatchObject({
      id: `resp_${id}`,
      model: "mock/own",
      status: "completed",
      output: [
        { type: "reasoning", summary: [{ text: "Let me think." }], status: "completed" },
        { type: "message", id: `msg_${id}1`, content: [{ text: HELLO.join("") }] },
        { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
      ],
      usage: { input_tokens: 12, output_tokens: 3, cost_micro: COST },
    });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("streams the content of the JSON response with renumbered events, and ends after the charge", async () => {
    const { calls, bindings } = mockOpenAi(({ body }) =>
      replied(body["stream"] === true ? SAID.stream : SAID.json),
    );
    const json = await responseOf(await postResponse(key, SHOWN, { bindings }));
    const before = await balanceOf(key);
    const { response: whole } = await streamedResponseOf(
      await postResponse(key, { ...SHOWN, stream: true }, { bindings }),
    );
    expect(calls[1]?.body["stream_options"]).toEqual({ include_obfuscation: false });
    expect(plain(whole)).toEqual(plain(json));
    expect(whole.usage?.cost_micro).toBe(COST);
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("omits unrequested reasoning, and numbers the remaining items without gaps", async () => {
    const { bindings } = mockOpenAi(() => replied(SAID.stream));
    const { response: whole } = await streamedResponseOf(
      await postResponse(key, { stream: true }, { bindings }),
    );
    expect(whole.output.map(({ type }) => type)).toEqual(["message", "function_call"]);
  });

  it("returns a namespaced tool and the input of a custom tool in the client's format", async () => {
    const custom = JSON.parse(
      JSON.stringify(callItem("call_2", "files__patch", ["*** Be", 'gin "x"\n😀']))
        .replaceAll('"function_call"', '"custom_tool_call"')
        .replaceAll("function_call_arguments", "custom_tool_call_input")
        .replaceAll('"arguments"', '"input"'),
    ) as ReturnType<typeof callItem>;
    const calls = [callItem("call_1", "files__read", ['{"a"', ":1}"]), custom];
    const flat = scenario(calls);
    const own = JSON.stringify(calls).replaceAll(
      /"name":"files__(\w+)"/g,
      '"name":"$1","namespace":"files"',
    );
    const inside = scenario(JSON.parse(own) as typeof calls);
    const tools = [
      {
        type: "namespace",
        name: "files",
        tools: [
          { type: "function", name: "read" },
          { type: "custom", name: "patch" },
        ],
      },
    ];
    for (const [reply, isStream] of [
      [flat, true],
      [flat, false],
      [inside, true],
      [inside, false],
    ] as const) {
      const { bindings } = mockOpenAi(() => replied(isStream ? reply.stream : reply.json));
      const response = await postResponse(key, { tools, stream: isStream }, { bindings });
      const { output } = isStream
        ? (await streamedResponseOf(response)).response
        : await responseOf(response);
      expect(output).toMatchObject([
        { type: "function_call", name: "read", namespace: "files", arguments: '{"a":1}' },
        { type: "custom_tool_call", name: "patch", namespace: "files", input: '*** Begin "x"\n😀' },
      ]);
      vi.restoreAllMocks();
    }
  });

  it("returns refusals, citations and the phase of each text", async () => {
    const cited = {
      type: "url_citation",
      url: "https://x.test",
      title: "X",
      start_index: 0,
      end_index: 2,
    };
    const content = [
      {
        type: "output_text",
        text: "Hm",
        annotations: [cited, { type: "file_path" }],
        logprobs: [],
      },
      { type: "refusal", refusal: "No." },
    ];
    const item = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content,
      phase: "final_answer",
    };
    const { bindings } = mockOpenAi(() => Response.json(responseObject([item])));
    expect((await responseOf(await postResponse(key, {}, { bindings }))).output).toMatchObject([
      {
        phase: "final_answer",
        content: [
          { text: "Hm", annotations: [cited] },
          { type: "refusal", refusal: "No." },
        ],
      },
    ]);
  });
});
