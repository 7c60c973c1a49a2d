import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { HOST } from "../region.ts";

/** Words and marks that are one token each to the tokenizers of today's models. */
const TOKENS = [
  " the rain went over a small town and then it was very quiet again",
  " she asked an important question but nobody there had the answer",
  " we could see different people walking along the river in the morning",
]
  .flatMap((line) => line.split(/(?= )/))
  .concat([",", "."]);
const PROMPT_TOKENS = 20;
const head = { id: "chatcmpl-counted", created: 1_790_000_000, model: "counted" };

/** A model that streams a token in each event, and knows how many it has sent of each answer. */
export type CountedUpstream = {
  /** Vars of the region that makes `counted/model` a model it sells. */
  readonly bindings: Readonly<Record<string, string>>;
  /** Tokens that were sent for the request whose user text this is, and whether the answer came to its end. */
  readonly sent: (
    text: string,
  ) => { readonly tokens: number; readonly isWhole: boolean } | undefined;
  readonly stop: () => void;
};

/** Starts it on a free port; a token comes every `paceMs`, as many as the request's cap says. */
export async function startCountedUpstream(paceMs: number): Promise<CountedUpstream> {
  const sent = new Map<string, { tokens: number; isWhole: boolean }>();
  const server = createServer((incoming, response) => {
    let body = "";
    incoming.setEncoding("utf8").on("data", (part: string) => (body += part));
    incoming.on("end", () => {
      const { messages, max_tokens: cap } = JSON.parse(body) as {
        messages: { content: string }[];
        max_tokens: number;
      };
      const count = { tokens: 0, isWhole: false };
      sent.set(messages[0]?.content ?? "", count);
      response.writeHead(200, { "content-type": "text/event-stream" });
      writePaced(response, { cap, paceMs, count });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    bindings: bindingsOf(`http://${HOST}:${port}/v1`),
    sent: (text) => sent.get(text),
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function writePaced(
  response: ServerResponse,
  of: { cap: number; paceMs: number; count: { tokens: number; isWhole: boolean } },
): void {
  const { cap, paceMs, count } = of;
  response.write(chunk({ role: "assistant", content: "" }));
  const timer = setInterval(() => {
    if (response.destroyed) return clearInterval(timer);
    if (count.tokens < cap) {
      response.write(chunk({ content: TOKENS[count.tokens % TOKENS.length] }));
      count.tokens++;
      return;
    }
    clearInterval(timer);
    const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: cap };
    const total = { ...usage, total_tokens: PROMPT_TOKENS + cap };
    response.end(`${chunk({}, "stop")}${event({ choices: [], usage: total })}data: [DONE]\n\n`);
    count.isWhole = true;
  }, paceMs);
}

function chunk(delta: object, finish_reason: string | null = null): string {
  return event({ choices: [{ index: 0, delta, finish_reason }] });
}

function event(fields: object): string {
  return `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...fields })}\n\n`;
}

function bindingsOf(url: string): Record<string, string> {
  const model = {
    id: "counted/model",
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    price: { input: 1_000_000, output: 2_000_000 },
    routes: [{ provider: "counted", upstream_id: "counted" }],
  };
  return {
    PROVIDERS: JSON.stringify([{ id: "counted", base_url: url, regions: ["eu"] }]),
    MODELS: JSON.stringify([model]),
  };
}
