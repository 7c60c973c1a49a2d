import { expect, it } from "vitest";
import { createCohereProvider } from "../../src/models/providers/cohere.ts";
import { COHERE_CHAT } from "../fixtures/cohere-replies.ts";
import { expectSameHoweverCut } from "./adapter-kit.ts";

const provider = createCohereProvider("https://api.cohere.com/v2", "key");
// Cohere rejects with a status, so there is no stream to split.
const { refusal: _refusal, ...streams } = COHERE_CHAT;

for (const [name, { stream }] of Object.entries(streams)) {
  it(`a Cohere stream is converted to the same events however the stream is split: ${name}`, async () => {
    await expect(expectSameHoweverCut(provider, {}, stream)).resolves.toBeUndefined();
  });
}
