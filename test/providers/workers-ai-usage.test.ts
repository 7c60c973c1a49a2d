import { expect, it } from "vitest";
import { WorkersAiStream } from "../../src/models/protocols/workers-ai/answer.ts";
import {
  openAiChunk,
  cutStreamReply,
  jsonReply,
  openAiEndEvents,
  ROLE,
  streamReply,
  usageEvent,
} from "../fixtures/workers-ai-wire.ts";
import { answerTo, eventsOf } from "./adapter-kit.ts";
import { WORKERS_AI_PROVIDER as provider } from "./workers-ai-binding.ts";

const usage = (input: number, output: number, cacheRead = 0) => ({
  usage: { input, cacheRead, cacheWrite: 0, output, reasoning: 0 },
});

const text = (words: string, output = 1) => openAiChunk(`"content":"${words}"`, "null", output);

async function reports(...payloads: readonly string[]) {
  const events = await eventsOf(provider, {}, cutStreamReply(...payloads));
  return events.filter((event) => event.kind === "usage");
}

it("the Workers AI adapter returns the last event's usage as final, and adds up the chunks' usage as partial", async () => {
  // The total exceeds the sum, as recorded. Only the last event is right, also about cached tokens.
  const seen = await reports(
    ROLE,
    text("Hel", 2),
    text("lo", 3),
    ...openAiEndEvents("stop", 9),
    "[DONE]",
  );
  const partial = { kind: "usage", partial: true };
  expect(seen).toEqual([
    { ...partial, ...usage(12, 2) },
    { ...partial, ...usage(12, 5) },
    { ...partial, ...usage(12, 5) },
    { ...partial, ...usage(12, 5) },
    { kind: "usage", ...usage(8, 9, 4) },
  ]);
});

const nativeText = (words: string, output: number) =>
  `{"response":"${words}","usage":{"prompt_tokens":12,"completion_tokens":${output}}}`;

it("the Workers AI adapter treats totals on chunks as partial until the end", async () => {
  expect(await reports(nativeText("Hel", 1), nativeText("lo", 2), "[DONE]")).toEqual([
    { kind: "usage", partial: true, ...usage(12, 1) },
    { kind: "usage", partial: true, ...usage(12, 2) },
    { kind: "usage", ...usage(12, 2) },
  ]);
});

it("the Workers AI adapter never treats usage before later text as final", async () => {
  const first = '{"response":"Hel","usage":{"prompt_tokens":12,"completion_tokens":1}}';
  const seen = await reports(first, '{"response":"lo"}', "[DONE]");
  expect(seen).toEqual([{ kind: "usage", partial: true, ...usage(12, 1) }]);
});

it("the Workers AI adapter ignores zeros without a prompt, and reports no prompt tokens before output", async () => {
  const zeros = '"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}';
  expect(await reports(`{"response":"Hi",${zeros}}`, `{"response":"",${zeros}}`, "[DONE]")).toEqual(
    [],
  );
  expect(await reports(ROLE)).toEqual([]);
  const { answer } = await answerTo(provider, {}, jsonReply(`{"response":"Hi",${zeros}}`));
  expect(answer).toMatchObject({ kind: "json", usage: null });
});

it("the Workers AI adapter ignores malformed and missing counts", async () => {
  for (const odd of ['{"prompt_tokens":-1,"completion_tokens":2}', '{"prompt_tokens":1.5}', "7"]) {
    expect(await reports('{"response":"Hi"}', `{"response":"","usage":${odd}}`, "[DONE]")).toEqual(
      [],
    );
  }
});

it("the Workers AI adapter ends a stream at a finish reason without [DONE], and emits no end without either", async () => {
  const finished = await eventsOf(
    provider,
    {},
    cutStreamReply(ROLE, text("Hel"), ...openAiEndEvents("stop")),
  );
  expect(finished.at(-1)).toEqual({ kind: "end" });
  const broken = await eventsOf(provider, {}, cutStreamReply('{"response":"Hel"}', usageEvent()));
  expect(broken.map((event) => event.kind)).toEqual(["chunk", "text", "usage"]);
});

const kindsOf = async (...payloads: readonly string[]) =>
  (await eventsOf(provider, {}, streamReply(...payloads))).map((event) => event.kind);

it("the Workers AI adapter fails for a stream without events, but not for empty output", async () => {
  expect(await kindsOf()).toEqual(["error"]);
  expect(await kindsOf('{"p":"abdefgh"}')).toEqual(["error"]);
  expect(await kindsOf(usageEvent(0))).toEqual(["chunk", "chunk", "usage", "end"]);
});

it("the Workers AI adapter reads nothing after the end of a stream, and reports a model error as a failure", () => {
  const reader = new WorkersAiStream(9);
  const ends = [reader.read('{"response":"Hi"}', "message"), reader.read("[DONE]", "message")];
  expect(ends.flat().at(-1)).toEqual({ kind: "end" });
  expect(reader.read(usageEvent(), "message")).toEqual([]);
  const broken = new WorkersAiStream(9);
  const said = broken.read(openAiChunk('"content":"Hel"', '"error"'), "message");
  expect([...said, ...broken.endOfFile()].at(-1)).toMatchObject({
    kind: "error",
    failure: { kind: "retry" },
  });
});

it("the Workers AI adapter ignores chunks after the finish reason", async () => {
  const events = await eventsOf(
    provider,
    {},
    streamReply(openAiChunk('"content":"Hi"', '"stop"'), text("more"), usageEvent()),
  );
  expect(JSON.stringify(events)).not.toContain("more");
});
