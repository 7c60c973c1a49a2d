import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { expect, it } from "vitest";
import { gateway } from "./gateway.ts";

const at = gateway();
const options = () => ({
  apiKey: at.key,
  configuration: { baseURL: at.baseUrl },
  maxRetries: 0,
});

it("embeddings at their default", async () => {
  const embeddings = new OpenAIEmbeddings({ ...options(), model: "sandbox/embed" });
  const vectors = await embeddings.embedDocuments(["a text", "another one"]);
  expect(vectors.map((vector) => vector.length)).toEqual([256, 256]);
  expect(await embeddings.embedQuery("a text")).toEqual(vectors[0]);
});

it("chat, and a stream of it", async () => {
  const chat = new ChatOpenAI({ ...options(), model: "sandbox/echo" });
  expect((await chat.invoke("Hello from a client")).text).toContain("Hello from a client");
  let text = "";
  for await (const part of await chat.stream("Hello from a client")) text += part.text;
  expect(text).toContain("Hello from a client");
});
