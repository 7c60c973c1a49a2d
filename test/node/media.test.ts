import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

let regions: TwoRegions;
let account: Account;
beforeAll(async () => {
  regions = await startTwoRegions();
  account = await Account.open(() => regions.eu, { keyScope: "global", rpmLimit: 1000 });
});
afterAll(() => regions.stop());

describe.each(["eu", "us"] as const)("OpenAI's SDK in the region %s", (region) => {
  const client = () =>
    new OpenAI({ apiKey: account.key, baseURL: regions[region].baseUrl, maxRetries: 0 });

  it("moderates texts", async () => {
    const { data, response } = await client()
      .moderations.create({ model: "sandbox/moderation", input: ["hello", "violence"] })
      .withResponse();
    expect(data.results.map(({ flagged }) => flagged)).toEqual([false, true]);
    expect(response.headers.get("x-cost-micro")).toBe("1000");
  });

  it("transcribes a file, with and without streaming", async () => {
    const model = "sandbox/transcribe";
    const sent = () => ({
      model,
      file: new File(["ID3", new Uint8Array(19_997).fill(7)], "a.mp3"),
    });
    const { data, response } = await client().audio.transcriptions.create(sent()).withResponse();
    expect(data.text).toBe("This is the audio of a.mp3.");
    expect(response.headers.get("x-cost-micro")).toBe("2000");
    const types: string[] = [];
    const stream = await client().audio.transcriptions.create({ ...sent(), stream: true });
    for await (const { type } of stream) types.push(type);
    expect(types).toEqual(["transcript.text.delta", "transcript.text.done"]);
  });

  it("returns the text of a document", async () => {
    const document = { type: "document_url", document_url: "https://example.com/a.pdf" };
    const body = { model: "sandbox/ocr", document, pages: "0-1" };
    const answer = await client().post<{ pages: { markdown: string }[] }>("/ocr", { body });
    expect(answer.pages.map(({ markdown }) => markdown)).toEqual(["# Page 0", "# Page 1"]);
  });

  it("generates speech from a text, also as a stream of events", async () => {
    const input = { model: "sandbox/speech", voice: "alloy", input: "Grüße" } as const;
    const file = await client().audio.speech.create({ ...input, response_format: "wav" });
    expect(file.headers.get("content-type")).toBe("audio/wav");
    expect(await file.text()).toBe("Grüße");
    const events = await client().audio.speech.create({ ...input, stream_format: "sse" });
    expect(await events.text()).toMatch(/"type":"speech.audio.done",.*"characters":5,/);
  });
});
