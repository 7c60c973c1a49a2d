import { expect, it } from "vitest";
import { WORKERS_AI_CHAT, WORKERS_AI_OPENAI_CHAT } from "../fixtures/workers-ai-replies.ts";
import { expectSameHoweverCut } from "./adapter-kit.ts";
import { WORKERS_AI_PROVIDER as provider } from "./workers-ai-binding.ts";

const FORMS = { "Workers AI's own form": WORKERS_AI_CHAT, "OpenAI's form": WORKERS_AI_OPENAI_CHAT };

for (const [form, scenarios] of Object.entries(FORMS)) {
  for (const [name, { stream }] of Object.entries(scenarios)) {
    it(`the Workers AI adapter returns the same events however a stream is split: ${form}, ${name}`, async () => {
      await expect(expectSameHoweverCut(provider, {}, stream)).resolves.toBeUndefined();
    });
  }
}
