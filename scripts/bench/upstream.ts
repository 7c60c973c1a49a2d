// The bench's upstream, in a process of its own: an OpenAI-compatible server that answers JSON at once
// and streams a word every 2 ms, or every 20 ms when the model's name ends in "typical", as many as the
// request's cap allows, at most 200. One whose name ends in "steady" has a word every 5 ms; "slow" begins after 50 ms and writes 25 words
// a second. It answers OpenAI's Responses and Anthropic's Messages too, at their paths. Started with fork(): it sends its port to its parent and ends with it.
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nativeAnswers } from "./native-answers.ts";
import type { WireAnswer } from "./native-answers.ts";

const WORDS = 200;
/** Models leave time between words; without it a gateway reads many as one chunk and looks cheap. */
const PACE_MS = 2;
const TYPICAL_PACE_MS = 20;
const STEADY_PACE_MS = 5;
const SLOW = { firstMs: 50, paceMs: 40 } as const;
const usageOf = (words: number): object => ({
  prompt_tokens: 20,
  completion_tokens: words,
  total_tokens: 20 + words,
});
const head = { id: "chatcmpl-bench", created: 1_790_000_000, model: "bench" };

const json = Buffer.from(
  JSON.stringify({
    ...head,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "A short answer of some twenty words. ".repeat(4) },
        finish_reason: "stop",
      },
    ],
    usage: usageOf(WORDS),
  }),
);
const chunk = (delta: object, finish_reason: string | null = null): string =>
  event({ choices: [{ index: 0, delta, finish_reason }] });
const first = Buffer.from(chunk({ role: "assistant", content: "" }));
const words = Array.from({ length: WORDS }, (_, i) => Buffer.from(chunk({ content: `word${i} ` })));
/** A charge above what was held is logged: usage says what was written. */
const lastOf = (shown: number): Buffer => {
  const usage = event({ choices: [], usage: usageOf(shown) });
  return Buffer.from(`${chunk({}, "stop")}${usage}data: [DONE]\n\n`);
};

const CHAT: WireAnswer = { json, first, words, last: lastOf(WORDS) };
const NATIVE = nativeAnswers(WORDS);

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (part: string) => (body += part));
  request.on("end", () => {
    const wire = NATIVE.get(request.url ?? "") ?? CHAT;
    if (isFor("slow", body)) setTimeout(() => answer(body, response, wire), SLOW.firstMs);
    else answer(body, response, wire);
  });
});
server.keepAliveTimeout = 60_000; // longer than the bench leaves a connection alone
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit(0));
process.on("SIGINT", () => {
  // Ctrl-C in a terminal reaches this process too; the parent decides when to end.
});

function answer(body: string, response: ServerResponse, wire: WireAnswer): void {
  if (/"stream":\s*true/.test(body)) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const shown = wire.words.slice(0, capOf(body));
    const last = wire === CHAT ? lastOf(shown.length) : wire.last;
    writePaced(response, { ...wire, words: shown, last }, paceOf(body));
    return;
  }
  const { length } = wire.json;
  response.writeHead(200, { "content-type": "application/json", "content-length": length });
  response.end(wire.json);
}

function writePaced(response: ServerResponse, wire: WireAnswer, paceMs: number): void {
  response.write(wire.first);
  const left = wire.words.values();
  const timer = setInterval(() => {
    const next = left.next();
    if (next.done !== true && !response.destroyed) {
      response.write(next.value);
      return;
    }
    clearInterval(timer);
    response.end(wire.last);
  }, paceMs);
}

function paceOf(body: string): number {
  if (isFor("slow", body)) return SLOW.paceMs;
  if (isFor("steady", body)) return STEADY_PACE_MS;
  return isFor("typical", body) ? TYPICAL_PACE_MS : PACE_MS;
}

function isFor(model: string, body: string): boolean {
  return new RegExp(`"model":\\s*"[^"]*${model}"`).test(body);
}

function capOf(body: string): number {
  return Number(/"max_(?:completion_|output_)?tokens":\s*(\d+)/.exec(body)?.[1] ?? WORDS);
}

function event(fields: object): string {
  return `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...fields })}\n\n`;
}
