import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { HOST } from "../region.ts";

type Asked = {
  readonly model: string;
  readonly stream: boolean;
  readonly cap: number;
  readonly input: readonly unknown[];
};
export type Upstream = {
  readonly bindings: Readonly<Record<string, string>>;
  stop(): Promise<void>;
};

/** What its models cost: micros for a million tokens. */
export const MOCK_PRICES = {
  chat: { input: 1_500_000, output: 3_000_000 },
  embeddings: { input: 700_000 },
} as const;
const WORD_MS = 6;
const WORDS_MAX = 60;
const HEAD = { id: "chatcmpl-soak", created: 1_790_000_000, model: "soak" };
const ID = "mock";

/**
 * An OpenAI-compatible upstream in this process, and the vars that make both regions sell it: `mock/chat`
 * answers after a moment, `mock/flaky` fails one time in three and has a second route, `mock/broken` always
 * fails, `mock/busy` is overloaded, `mock/cutting` breaks streams off.
 */
export async function startUpstream(): Promise<Upstream> {
  let turn = 0;
  const server = createServer((request, response) => {
    let text = "";
    response.on("error", () => undefined);
    request.setEncoding("utf8");
    request.on("error", () => undefined);
    request.on("data", (part: string) => (text += part));
    request.on("end", () => answer(askedIn(text), response, turn++));
  });
  server.keepAliveTimeout = 600_000; // a connection that is closed while it is taken up again is no failure to find
  server.listen(0, HOST);
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    bindings: {
      PROVIDERS: JSON.stringify([
        { id: ID, base_url: `http://${HOST}:${port}/v1`, regions: ["eu", "us"] },
      ]),
      MODELS: JSON.stringify([
        ...["chat", "broken", "busy", "cutting"].map((name) => model(name, "chat", [name])),
        model("flaky", "chat", ["flaky", "chat"]),
        model("embed", "embeddings", ["embed"]),
      ]),
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function model(name: string, kind: "chat" | "embeddings", upstream: readonly string[]): object {
  return {
    id: `${ID}/${name}`,
    kind,
    context: 100_000,
    ...(kind === "chat" ? { max_output: 4096 } : {}),
    price: MOCK_PRICES[kind],
    routes: upstream.map((upstream_id) => ({ provider: ID, upstream_id })),
  };
}

function askedIn(text: string): Asked {
  const body = JSON.parse(text) as Record<string, unknown>;
  const cap = Number(body["max_tokens"] ?? body["max_completion_tokens"] ?? WORDS_MAX);
  const { input } = body;
  return {
    model: String(body["model"]),
    stream: body["stream"] === true,
    cap: Math.min(cap, WORDS_MAX),
    input: Array.isArray(input) ? (input as unknown[]) : [input],
  };
}

function answer(asked: Asked, response: ServerResponse, turn: number): void {
  const { model: name, stream, cap, input } = asked;
  if (name === "broken" || (name === "flaky" && turn % 3 === 0)) {
    return json(response, 500, { error: { message: "broken", type: "server_error" } });
  }
  if (name === "busy") return json(response, 503, { error: { message: "busy", type: "busy" } });
  if (name === "embed") {
    const data = input.map((_, index) => ({ object: "embedding", index, embedding: [0.6, 0.8] }));
    const usage = { prompt_tokens: 9, total_tokens: 9 };
    return json(response, 200, { object: "list", data, model: "soak", usage });
  }
  const words = Math.max(1, Math.min(cap, 5 + ((turn * 13) % WORDS_MAX)));
  const usage = { prompt_tokens: 8, completion_tokens: words, total_tokens: 8 + words };
  if (stream) return streamed(response, { words, usage, breaksOff: name === "cutting" });
  const message = { role: "assistant", content: "word ".repeat(words) };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const body = { ...HEAD, object: "chat.completion", choices, usage };
  setTimeout(() => json(response, 200, body), (turn * 7) % 40);
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function streamed(
  response: ServerResponse,
  how: { readonly words: number; readonly usage: object; readonly breaksOff: boolean },
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(chunk({ role: "assistant", content: "" }));
  let left = how.words;
  const timer = setInterval(() => {
    if (response.destroyed) return clearInterval(timer);
    if (left-- > 0 && !(how.breaksOff && left < how.words / 2)) {
      return void response.write(chunk({ content: "word " }));
    }
    clearInterval(timer);
    if (how.breaksOff) return void response.socket?.resetAndDestroy();
    const last = event({ choices: [], usage: how.usage });
    response.end(`${chunk({}, "stop")}${last}data: [DONE]\n\n`);
  }, WORD_MS);
}

function chunk(delta: object, finish_reason: string | null = null): string {
  return event({ choices: [{ index: 0, delta, finish_reason }] });
}

function event(fields: object): string {
  return `data: ${JSON.stringify({ ...HEAD, object: "chat.completion.chunk", ...fields })}\n\n`;
}
