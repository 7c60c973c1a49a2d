import { afterAll, expect, it } from "vitest";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import { RESPONSES_FAILED } from "../fixtures/responses-replies.ts";
import { codex } from "./codex.ts";
import { gateway } from "./gateway.ts";

/** A fake OpenAI that rejects some requests and reports their tokens. */
const host = await startMockProvider();
afterAll(() => host.close());
const { headers, body } = RESPONSES_FAILED.provoked.stream;
const events = String(body).split(/(?<=\n\n)/);

const at = gateway({
  HOST_KEY: "sk-host",
  PROVIDERS: JSON.stringify([
    { id: "own", base_url: host.url, profile: "openai", secret: "HOST_KEY", regions: ["eu"] },
  ]),
  MODELS: JSON.stringify([
    {
      id: "mock/own",
      kind: "chat",
      context: 128_000,
      max_output: 4096,
      abilities: ["tools", "vision", "reasoning"],
      price: { input: 1_000_000, output: 2_000_000 },
      routes: [{ provider: "own", upstream_id: "gpt-6-sol" }],
    },
  ]),
});
/** 12 input and 3 output tokens. */
const COST = 12 + 3 * 2;

it.each([
  ["in mid-stream", events],
  ["before any output", [...events.slice(0, 1), ...events.slice(-1)]],
])(
  "codex exec ends the task after a charged failure (%s), without a retry or a second charge",
  async (_, events) => {
    const paths: string[] = [];
    host.script(({ path }, response) => {
      paths.push(path);
      response.writeHead(200, headers).end(events.join(""));
    });
    const before = await at.balance();
    const turn = await codex(at, { prompt: "Say hello", model: "mock/own" });
    expect([turn.lines.at(-1)?.type, turn.log]).toEqual(["turn.failed", expect.anything()]);
    expect(paths).toEqual(["/v1/responses"]);
    expect(before - (await at.balance())).toBe(COST);
  },
);
