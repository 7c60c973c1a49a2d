import OpenAI, { APIError } from "openai";

const client = new OpenAI(); // reads OPENAI_BASE_URL and OPENAI_API_KEY

const completion = await client.chat.completions.create({
  model: "smart",
  max_tokens: 200,
  messages: [{ role: "user", content: "Hello" }],
});
console.log(completion.choices[0]?.message.content);

const stream = await client.chat.completions.create({
  model: "smart",
  max_tokens: 200,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: "user", content: "Count to three" }],
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
  if (chunk.usage) console.log(`\n${chunk.usage.total_tokens} tokens`);
}

const balance = await client.get<{ credits_micro: number }>("/balance");
console.log(balance.credits_micro, "micro-credits left");

try {
  await client.chat.completions.create({
    model: "no-such-model",
    messages: [{ role: "user", content: "Hello" }],
  });
} catch (error) {
  if (!(error instanceof APIError)) throw error;
  console.log(error.status, error.code);
}
