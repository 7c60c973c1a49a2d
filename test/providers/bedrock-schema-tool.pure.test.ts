import { expect, it } from "vitest";
import {
  jsonReply,
  endFrames,
  streamReply,
  textFrames,
  toolFrames,
} from "../fixtures/bedrock-replies.ts";
import { answerTo, eventsOf, messageOf } from "./adapter-kit.ts";
import { BEDROCK, CLAUDE } from "./bedrock-kit.ts";

const SCHEMA = { type: "object", properties: { a: { type: "integer" } } };
const CALL = {
  upstreamId: CLAUDE,
  body: { response_format: { type: "json_schema", json_schema: { name: "a", schema: SCHEMA } } },
};

const use = (a: number) => ({ toolUse: { input: { a }, name: "json", toolUseId: "t" } });

it("the Bedrock adapter returns only the first call of the schema tool if the model calls the tool twice", async () => {
  const twice = [toolFrames(0, "json", ['{"a":1}']), toolFrames(1, "json", ['{"a":2}'])].flat();
  const reply = streamReply([...twice, ...endFrames("tool_use")]);
  expect(messageOf(await eventsOf(BEDROCK, CALL, reply))).toMatchObject({
    content: '{"a":1}',
    finish: "stop",
  });
  const { answer } = await answerTo(BEDROCK, CALL, jsonReply([use(1), use(2)], "tool_use"));
  expect(answer).toMatchObject({
    body: { choices: [{ message: { content: '{"a":1}' }, finish_reason: "stop" }] },
  });
});

it("the Bedrock adapter drops text next to a schema tool call, and returns the text if there is no call", async () => {
  const text = textFrames(0, ["<thinking>", "Hm."]);
  const answer = toolFrames(1, "json", ['{"a":1}']);
  const other = toolFrames(1, "other", ["{}"]);
  const read = async (frames: Uint8Array[]) =>
    messageOf(await eventsOf(BEDROCK, CALL, streamReply([...frames, ...endFrames("tool_use")])));
  expect(await read([...text, ...answer, ...textFrames(2, ["Bye"])])).toMatchObject({
    content: '{"a":1}',
  });
  expect(await read(text)).toMatchObject({ content: "<thinking>Hm.", finish: "stop" });
  expect(await read([...text, ...other])).toMatchObject({
    content: "<thinking>Hm.",
    tools: [{ name: "other" }],
  });
  const events = JSON.stringify(
    await eventsOf(BEDROCK, CALL, streamReply([...text, ...other, ...endFrames("tool_use")])),
  );
  // in the order of the output
  expect(events.indexOf("Hm.")).toBeLessThan(events.indexOf('"other"'));
  const whole = await answerTo(BEDROCK, CALL, jsonReply([{ text: "Hm." }, use(1)], "tool_use"));
  expect(whole.answer).toMatchObject({
    body: { choices: [{ message: { content: '{"a":1}' } }] },
  });
});
