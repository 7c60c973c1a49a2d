import { describe, expect, it } from "vitest";
import { NO_USAGE } from "../../../src/shared/usage.ts";
import type { JsonObject } from "../../../src/models/core/provider.ts";
import { countTokens } from "../../../src/models/providers/sandbox/tokens.ts";
import {
  callSandbox,
  batches,
  chunkChoices,
  complete,
  streamed,
  open,
  replyTo,
} from "./sandbox-call.ts";
import { messageOf } from "../adapter-kit.ts";
import { sandbox, contentOf, user } from "./sandbox-call.ts";

const TEXT = "The quick  brown fox\njumps over the lazy dog.";

describe("the sandbox model echo", () => {
  it("returns the last user text exactly in OpenAI's format", async () => {
    const messages = [
      { role: "developer", content: "Be kind." },
      { role: "system", content: [{ type: "text", text: "Be brief." }] },
      user("first"),
      { role: "assistant", content: null, refusal: "no" },
      user(TEXT),
    ];
    const completion = await complete({ messages, seed: 7 });
    expect(completion).toEqual({
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: TEXT, refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: {
        ...NO_USAGE,
        input: 5 * 3 + countTokens("Be kind.Be brief.first") + 1 + countTokens(TEXT),
        output: countTokens(TEXT),
      },
      system_fingerprint: "fp_sandbox",
    });
    expect(await complete({ messages, seed: 8 })).toEqual(completion);
  });

  it("joins text parts, and replaces images with a marker", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const parts = [{ type: "text", text: "What is" }, image, { type: "text", text: "this?" }];
    expect(await replyTo(parts)).toBe("What is\n[image]\nthis?");
  });

  it("returns a greeting if the request has no user text", async () => {
    const completion = await complete({ messages: [{ role: "system", content: "x" }] });
    expect(completion.choices[0].message.content).toMatch(/^Hello!/);
    expect(await replyTo("")).toMatch(/^Hello!/);
  });

  it("stops at the cap with finish_reason length, or with stop if the text is exactly as long as the cap", async () => {
    const total = countTokens(TEXT);
    const cut = await complete({ messages: [user(TEXT)] }, { cap: 4 });
    expect(cut.choices[0].message.content).toBe("The quick  brown fox");
    expect(cut.choices[0].finish_reason).toBe("length");
    expect(cut.usage?.output).toBe(4);
    const whole = await complete({ messages: [user(TEXT)] }, { cap: total });
    expect(whole.choices[0].finish_reason).toBe("stop");
  });

  it("ends the output before the first stop sequence, unless the cap comes first", async () => {
    expect(await replyTo(TEXT, { stop: " fox" })).toBe("The quick  brown");
    expect(await replyTo(TEXT, { stop: ["dog", "jumps", "", "zebra"] })).toBe(
      "The quick  brown fox\n",
    );
    expect(await replyTo(TEXT, { stop: null })).toBe(TEXT);
    const messages = [user(TEXT)];
    const stopped = await complete({ messages, stop: "dog" }, { cap: 100 });
    expect(stopped.choices[0].finish_reason).toBe("stop");
    const cut = await complete({ messages, stop: "dog" }, { cap: 2 });
    expect(cut.choices[0].finish_reason).toBe("length");
  });

  it("returns n choices numbered from 0, each within the output cap, and counts the tokens of all choices", async () => {
    const completion = await complete({ messages: [user(TEXT)], n: 3 }, { cap: 2 });
    expect(completion.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
    expect(completion.usage?.output).toBe(6);
  });

  it("rejects any other model name and an embeddings model with a failure that disables the route", async () => {
    for (const upstreamId of ["nope", "embed", "constructor"]) {
      expect(await callSandbox({ messages: [user("x")] }, { upstreamId })).toEqual({
        kind: "failure",
        failure: { kind: "disabled", reason: "unknown_model" },
      });
    }
    expect(sandbox.id).toBe("sandbox");
  });
});

describe("a stream of the sandbox model echo", () => {
  it("sends the role, one chunk per word, an empty delta with the finish reason, usage and an end", async () => {
    const all = await streamed({ messages: [user("Hello, wide world")] });
    const choices = chunkChoices(all);
    expect(choices.map((choice) => choice.delta)).toEqual([
      { role: "assistant", content: "", refusal: null },
      { content: "Hello," },
      { content: " wide" },
      { content: " world" },
      {},
    ]);
    expect(choices.map((choice) => choice.finish_reason)).toEqual([null, null, null, null, "stop"]);
    expect(all.map((event) => event.kind)).toEqual([...choices.map(() => "chunk"), "usage", "end"]);
    expect(all[0]).toMatchObject({ chunk: { system_fingerprint: "fp_sandbox" } });
    expect(all[5]).toEqual({
      kind: "usage",
      usage: { input: 6, output: 3, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
    });
  });

  it("contains the text, stop reason and output cap of the JSON response", async () => {
    const cases = [{ messages: [user(TEXT)] }, { messages: [user(` ${TEXT}\n`)], stop: "lazy" }];
    for (const body of cases) {
      const completion = await complete(body, { cap: 6 });
      const all = await streamed(body, { cap: 6 });
      expect(contentOf(all)).toBe(completion.choices[0].message.content);
      expect(chunkChoices(all).at(-1)?.finish_reason).toBe(completion.choices[0].finish_reason);
    }
  });

  it("contains a role, words and a finish reason for each of n choices", async () => {
    const all = chunkChoices(await streamed({ messages: [user("a b")], n: 2 }));
    for (const index of [0, 1]) {
      const own = all.filter((choice) => choice.index === index);
      expect(own.map((choice) => choice.delta.role).filter(Boolean)).toEqual(["assistant"]);
      expect(own.map((choice) => choice.delta.content ?? "").join("")).toBe("a b");
      expect(own.at(-1)).toMatchObject({ delta: {}, finish_reason: "stop" });
    }
  });

  it("delivers several words per read, and null after the end", async () => {
    const stream = await open({ messages: [user("word ".repeat(100))] });
    const all = await batches(stream);
    expect(all.length).toBeLessThan(20);
    expect(await stream.next()).toBeNull();
  });

  it("ends the stream if canceled, and throws if the signal aborts", async () => {
    const cancelled = await open({ messages: [user("word ".repeat(100))] });
    await cancelled.next();
    cancelled.cancel();
    cancelled.cancel();
    expect(await cancelled.next()).toBeNull();
    const controller = new AbortController();
    const messages = [user("word ".repeat(100))];
    const aborted = await open({ messages }, { signal: controller.signal });
    await aborted.next();
    controller.abort();
    await expect(aborted.next()).rejects.toThrow("connection broke");
  });
});

describe("the logprobs field of the sandbox model echo", () => {
  const body = { messages: [user("Hello, wide world")], logprobs: true, top_logprobs: 3 };

  it("contains one entry per token, whose bytes form the text", async () => {
    const [choice] = (await complete(body)).choices;
    const content = choice.logprobs?.content ?? [];
    expect(content.map((entry) => entry.token).join("")).toBe("Hello, wide world");
    for (const entry of content) {
      expect(entry.bytes).toEqual([...new TextEncoder().encode(entry.token)]);
      expect(entry.logprob).toBeLessThanOrEqual(0);
      expect(entry.top_logprobs).toHaveLength(3);
      expect(entry.top_logprobs[0]).toMatchObject({ token: entry.token, logprob: entry.logprob });
      const falling = entry.top_logprobs.map((top) => top.logprob);
      expect(falling).toEqual(falling.toSorted((a, b) => b - a));
    }
    expect(choice.logprobs?.refusal).toBeNull();
    expect(await complete(body)).toEqual(await complete(body));
  });

  it("contains each token's logprob in the chunk of that token", async () => {
    const choices = chunkChoices(await streamed(body)).filter((choice) => choice.delta.content);
    for (const choice of choices) {
      expect(choice.logprobs?.content.map((entry) => entry.token)).toEqual([choice.delta.content]);
    }
    expect(choices).toHaveLength(3);
  });
});

describe("the sandbox model think", () => {
  const body = { messages: [user("one two")] };
  const think = { upstreamId: "think" };

  it("returns reasoning before its output, as JSON and as a stream, and counts the reasoning", async () => {
    const completion = await complete(body, think);
    const { message } = completion.choices[0];
    const { reasoning_content: thought, reasoning_details: details } = message as unknown as {
      reasoning_content: string;
      reasoning_details: JsonObject[];
    };
    expect(thought).toBe("The user said: one two. I repeat what was said.");
    expect(details).toEqual([
      { type: "sandbox.thinking", thinking: thought, signature: expect.any(String) as string },
    ]);
    expect(message.content).toBe("one two");
    const streamedMessage = messageOf(await streamed(body, think));
    expect(streamedMessage).toMatchObject({ content: "one two", reasoning: thought, details });
    const usage = streamedMessage.usage?.kind === "usage" ? streamedMessage.usage.usage : null;
    expect(usage?.reasoning).toBeGreaterThan(5);
    expect(usage?.output).toBeGreaterThan(usage?.reasoning ?? 0);
  });

  it("leaves half of the output cap for the visible text, and returns no reasoning if no effort is set", async () => {
    const capped = messageOf(await streamed(body, { ...think, cap: 6 }));
    expect(capped.content).toBe("one two");
    expect(capped.reasoning).not.toBe("");
    const none = await complete({ ...body, reasoning_effort: "none" }, think);
    expect(none.choices[0].message).not.toHaveProperty("reasoning_content");
  });
});

it("the sandbox rejects legacy functions, as every provider does", async () => {
  const messages = [user("x")];
  const call = { name: "f", arguments: "{}" };
  const bodies = [
    { messages, functions: [{ name: "f" }] },
    { messages, function_call: "auto" },
    { messages: [...messages, { role: "function", name: "f", content: "x" }] },
    { messages: [...messages, { role: "assistant", content: null, function_call: call }] },
  ];
  const kinds = await Promise.all(bodies.map((one) => callSandbox(one)));
  for (const answer of kinds) {
    expect(answer).toMatchObject({ kind: "failure", failure: { kind: "refused" } });
  }
});
