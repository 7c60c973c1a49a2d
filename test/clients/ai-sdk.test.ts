import { createAnthropic } from "@ai-sdk/anthropic";
import { createAnthropic as createAnthropic2 } from "@ai-sdk/anthropic2";
import { createAnthropic as createAnthropic3 } from "@ai-sdk/anthropic3";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI2 } from "@ai-sdk/openai2";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai3";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAICompatible as createOpenAICompatible1 } from "@ai-sdk/openai-compatible1";
import { createOpenAICompatible as createOpenAICompatible2 } from "@ai-sdk/openai-compatible2";
import * as ai7 from "ai";
import * as ai5 from "ai5";
import * as ai6 from "ai6";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { EXPECTED_CONVERSATION, TURNS, Weather } from "./conversation.ts";
import { CLAUDE, GPT, authorGateway } from "./author-gateway.ts";

const at = await authorGateway();

/** The common part of the types of three major versions. */
type Messages = readonly unknown[];
type Answer = {
  readonly text: string | PromiseLike<string>;
  readonly response: { readonly messages: Messages } | PromiseLike<{ readonly messages: Messages }>;
  /** Messages of all steps, from version 7 on. In earlier versions, those of `response`. */
  readonly responseMessages?: Messages | PromiseLike<Messages>;
};
type CallOptions = Readonly<Record<string, unknown>>;
type AiSdk = {
  readonly generateText: (options: CallOptions) => Promise<Answer>;
  readonly streamText: (options: CallOptions) => Answer;
  readonly stepCountIs: (count: number) => unknown;
  readonly tool: (tool: CallOptions) => unknown;
};
type Models = { (id: string): unknown; readonly chat: (id: string) => unknown };
type Packages = {
  readonly ai: AiSdk;
  readonly openai: (options: CallOptions) => Models;
  readonly anthropic: (options: CallOptions) => Models;
  readonly compatible: (options: CallOptions) => Models;
};

const MAJORS = [
  [5, ai5, createOpenAI2, createAnthropic2, createOpenAICompatible1],
  [6, ai6, createOpenAI3, createAnthropic3, createOpenAICompatible2],
  [7, ai7, createOpenAI, createAnthropic, createOpenAICompatible],
].map(([major, ai, openai, anthropic, compatible]) => ({
  major: Number(major),
  packages: { ai, openai, anthropic, compatible } as unknown as Packages,
}));

/** Runs the whole conversation with default settings. */
async function talk(
  { ai }: Packages,
  { model, streamed, more }: { model: unknown; streamed: boolean; more?: CallOptions },
): Promise<typeof EXPECTED_CONVERSATION> {
  const weather = new Weather();
  const tool = ai.tool({
    description: weather.description,
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }: { city: string }) => weather.call(city),
  });
  const messages: unknown[] = [];
  const texts: string[] = [];
  for (const content of TURNS) {
    messages.push({ role: "user", content });
    const failures: unknown[] = [];
    const options = {
      ...more,
      model,
      messages: [...messages],
      tools: { get_weather: tool },
      stopWhen: ai.stepCountIs(5),
      maxRetries: 0,
      onError: ({ error }: { error: unknown }) => failures.push(error),
    };
    const answer = streamed ? ai.streamText(options) : await ai.generateText(options);
    const text = await Promise.resolve(answer.text).catch((error: unknown) => {
      throw failures[0] ?? error;
    });
    if (failures.length > 0) throw failures[0];
    texts.push(text);
    messages.push(...((await answer.responseMessages) ?? (await answer.response).messages));
  }
  return { cities: weather.cities, texts };
}

describe.each(MAJORS)("the AI SDK, version $major", ({ major, packages }) => {
  const { openai, anthropic, compatible } = packages;
  const own = () => ({ apiKey: at.key, baseURL: at.baseUrl });
  const ENDPOINTS: Readonly<Record<string, (id: string) => unknown>> = {
    chat: (id) => openai(own()).chat(id),
    compatible: (id) => compatible({ ...own(), name: "turnpike", includeUsage: true })(id),
    messages: (id) => anthropic(own())(id),
  };
  const cases = Object.entries(ENDPOINTS).flatMap(([endpoint, make]) =>
    ["sandbox/agent", GPT, CLAUDE].flatMap((id) =>
      [false, true].map((streamed) => ({ endpoint, make, id, streamed })),
    ),
  );

  it.each(cases)(
    "completes a conversation at $endpoint with $id, streamed: $streamed",
    async ({ make, id, streamed }) => {
      expect(await talk(packages, { model: make(id), streamed })).toEqual(EXPECTED_CONVERSATION);
    },
  );

  describe.each(["sandbox/agent", GPT, CLAUDE])(
    "a Responses API call by the AI SDK with the model %s",
    (id) => {
      const model = () => openai(own())(id);

      it.each([false, true])(
        "completes a conversation with store: false, streamed: %s",
        async (streamed) => {
          const more = { providerOptions: { openai: { store: false } } };
          expect(await talk(packages, { model: model(), streamed, more })).toEqual(
            EXPECTED_CONVERSATION,
          );
        },
      );

      it.each([false, true])(
        "fails with advice if the SDK needs stored responses that the organization doesn't store, streamed: %s",
        async (streamed) => {
          const talked = talk(packages, { model: model(), streamed });
          // For reasoning models, versions 6 and 7 reference items only together with requested reasoning.
          if (id === GPT && major > 5) expect(await talked).toEqual(EXPECTED_CONVERSATION);
          else await expect(talked).rejects.toThrow(/keep_responses_hours.*store = false/);
        },
      );

      it.each([false, true])(
        "completes a conversation if the organization stores responses, streamed: %s",
        async (streamed) => {
          const kept = openai({ ...own(), apiKey: await at.storingKey() });
          expect(await talk(packages, { model: kept(id), streamed })).toEqual(
            EXPECTED_CONVERSATION,
          );
        },
      );
    },
  );
});
