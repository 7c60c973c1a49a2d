import { PDF_DATA_URL_PREFIX } from "../../src/models/core/core-request.ts";
import { pdfOf } from "../fixtures/pdf.ts";
import { beforeAll, describe, expect, it } from "vitest";
import { eventsOf, followResponse } from "../protocols/responses/follow.ts";
import { response as responseSchema } from "../protocols/responses/sdk-schemas.ts";
import type { AnyResponse } from "../protocols/responses/sdk-schemas.ts";
import { openAccount, send } from "./client.ts";

/**
 * The compliance suite of Open Responses (openresponses.org), case by case: 200, an object and
 * events of the schema, non-empty output, and `completed`. `previous_response_id` returns 400 here
 * by design.
 */
let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const user = (content: unknown) => ({ type: "message", role: "user", content });
const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Get the current weather for a location",
  parameters: {
    type: "object",
    properties: { location: { type: "string" } },
    required: ["location"],
  },
};
const ASKED = user("What's the weather like in San Francisco?");
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PAPER = PDF_DATA_URL_PREFIX + btoa(pdfOf(1));
const NOTE = "data:text/plain;base64,aGVsbG8gd29ybGQ=";

async function createResponse(fields: Record<string, unknown>): Promise<AnyResponse> {
  const body = { model: "sandbox/agent", ...fields };
  const answer = await send("/v1/responses", { key, body });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, expect.any(String)]);
  const response =
    fields["stream"] === true
      ? followResponse(eventsOf(text)).response
      : responseSchema.parse(JSON.parse(text));
  expect(response.status).toBe("completed");
  expect(response.output).not.toEqual([]);
  return response;
}

const callsIn = ({ output }: AnyResponse) => output.filter(({ type }) => type === "function_call");

describe.each([
  ["whole", false],
  ["streamed", true],
])("POST /v1/responses with a %s response", (_, stream) => {
  it.each<[string, unknown]>([
    ["a user's message", [user("Say hello in exactly 3 words.")]],
    [
      "a system message before a user's message",
      [{ type: "message", role: "system", content: "You are a pirate." }, user("Say hello.")],
    ],
    [
      "an image",
      [
        user([
          { type: "input_text", text: "What do you see?" },
          { type: "input_image", image_url: PIXEL },
        ]),
      ],
    ],
    [
      "a text file",
      [
        user([
          { type: "input_text", text: "What does it say?" },
          { type: "input_file", filename: "note.txt", file_data: NOTE },
        ]),
      ],
    ],
    [
      "a PDF",
      [
        user([
          { type: "input_text", text: "What does it say?" },
          { type: "input_file", filename: "paper.pdf", file_data: PAPER },
        ]),
      ],
    ],
    [
      "several turns",
      [
        user("My name is Alice."),
        { type: "message", role: "assistant", content: "Hello Alice!" },
        user("What is my name?"),
      ],
    ],
  ])("supports %s", async (name, input) => {
    const { output } = await createResponse({ input, stream });
    expect([name, output.map(({ type }) => type)]).toEqual([name, ["message"]]);
  });

  it("returns a function call, and then a text after the client sends the function's output", async () => {
    const tools = [WEATHER];
    const called = await createResponse({ input: [ASKED], tools, stream });
    expect(callsIn(called)).toMatchObject([{ name: "get_weather" }]);
    const choice = { type: "function", name: "get_weather" };
    const forced = await createResponse({ input: [ASKED], tools, tool_choice: choice, stream });
    const [call] = callsIn(forced);
    if (call?.type !== "function_call") throw new Error("no call");
    const { call_id } = call;
    const output = { type: "function_call_output", call_id, output: "It is 18 degrees." };
    const { output: finalOutput } = await createResponse({
      input: [ASKED, call, output],
      tools,
      stream,
    });
    expect(JSON.stringify(finalOutput)).toContain("18 degrees");
  });
});
