import { expect, it } from "vitest";
import { parseConfig } from "../../src/shared/config/config.ts";
import { buildProviders, listActiveProviders } from "../../src/models/providers/registry.ts";
import { bindingFailure, jsonReply } from "../fixtures/workers-ai-replies.ts";
import { answerTo, callOf } from "./adapter-kit.ts";
import { BINDING, WORKERS_AI_PROVIDER as provider } from "./workers-ai-binding.ts";

const M3 = "@cf/baai/bge-m3";
const LARGE = "@cf/baai/bge-large-en-v1.5";
const vectors = (count: number, first = 0, pooling = "cls") => {
  const data = Array.from({ length: count }, (_, at) => `[${first + at},0.5]`);
  return jsonReply(`{"shape":[${count},2],"data":[${data.join()}],"pooling":"${pooling}"}`);
};
const embed = (body: { input: unknown; dimensions?: number }, upstreamId = M3) => ({
  kind: "embeddings" as const,
  upstreamId,
  body,
});

it("the Workers AI adapter sends texts in batches of 100, and returns vectors in order without usage", async () => {
  const input = Array.from({ length: 250 }, (_, at) => `text ${at}`);
  const replies = [vectors(100), vectors(100, 100), vectors(50, 200)];
  const { answer, requests } = await answerTo(provider, embed({ input }), replies);
  const sizes = requests.map((one) => (one.json["inputs"] as { text: string[] }).text.length);
  expect(sizes).toEqual([100, 100, 50]);
  if (answer.kind !== "json") throw new Error("no answer");
  expect(answer.usage).toBeNull();
  const data = answer.body["data"] as number[][];
  expect(data.map(([value]) => value)).toEqual(input.map((_, at) => at));
});

it("the Workers AI adapter requests the model's pooling if possible, and rejects a response with any other pooling", async () => {
  const { answer, requests } = await answerTo(provider, embed({ input: "a" }, LARGE), vectors(1));
  expect(requests[0]?.json["inputs"]).toEqual({ text: ["a"], pooling: "cls" });
  expect(answer.kind).toBe("json");
  const m3 = await answerTo(provider, embed({ input: "a" }), vectors(1));
  expect(m3.requests.at(-1)?.json["inputs"]).toEqual({ text: ["a"] });
  const other = await answerTo(provider, embed({ input: "a" }, LARGE), vectors(1, 0, "mean"));
  expect(other.answer).toMatchObject({ kind: "failure", failure: { reason: "bad_answer" } });
});

it("the Workers AI adapter fails if a vector is missing or invalid, or if the first batch fails", async () => {
  const replies = [
    vectors(1),
    jsonReply('{"data":[[1],["x"]]}'),
    jsonReply('{"data":[[1],[]]}'),
    bindingFailure(429, 3040),
  ];
  for (const reply of replies) {
    const { answer } = await answerTo(provider, embed({ input: ["a", "b"] }), reply);
    expect(answer.kind).toBe("failure");
  }
});

const dimensioned = async (dimensions: number) =>
  (await answerTo(provider, embed({ input: "a", dimensions }), vectors(1))).answer;

it("the Workers AI adapter rejects dimensions that the model doesn't support", async () => {
  expect(await dimensioned(2)).toMatchObject({ kind: "json" });
  expect(await dimensioned(3)).toMatchObject({ failure: { kind: "refused", param: "dimensions" } });
});

const configWith = (more: object) =>
  parseConfig({
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
    REGION: "us",
    ...more,
  });

it("the Workers AI provider is available if its binding exists, and has no region", async () => {
  const [withoutBinding, withBinding] = [configWith({}), configWith({ AI: BINDING })];
  if (!withoutBinding.ok || !withBinding.ok) throw new Error("bad configuration");
  expect(listActiveProviders(withoutBinding.config)).toEqual([]);
  expect(listActiveProviders(withBinding.config)).toEqual([
    { id: "workers-ai", regions: ["global"] },
  ]);
  const built = buildProviders(withBinding.config, provider).get("workers-ai");
  const { answer } = await answerTo(built ?? provider, {}, jsonReply('{"response":"Hi"}'));
  expect(built).toBeDefined();
  expect(answer).toMatchObject({ kind: "json" });
  expect(await provider.send(callOf())).toMatchObject({ kind: "json" });
});
