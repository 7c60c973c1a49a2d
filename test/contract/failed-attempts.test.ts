import { beforeEach, describe, expect, it, vi } from "vitest";
import { openAccount } from "./client.ts";
import { separateIsolate } from "./metrics-client.ts";
import {
  brokenStream,
  mockUpstream,
  UPSTREAM_SECRET,
  UPSTREAM_VARS,
  upstreamError,
} from "./upstream.ts";
import { chunkOf } from "../fixtures/openai-replies.ts";

type Line = Readonly<Record<string, unknown>>;
let lines: Line[] = [];
beforeEach(() => {
  lines = [];
  vi.spyOn(console, "warn").mockImplementation((line: string) => {
    lines.push(JSON.parse(line) as Line);
  });
});

const failedAttempts = (): Line[] => lines.filter(({ event }) => event === "attempt_failed");
const counted = (text: string): string[] =>
  text.split("\n").filter((line) => line.startsWith("turnpike_attempts_failed_total{"));

/** Returns the log and metrics of one request to a provider with this response. */
async function callProvider(answer: () => Response | Promise<Response>, fields: object = {}) {
  const { key } = await openAccount();
  mockUpstream(answer);
  const { ask, metrics } = separateIsolate(undefined, UPSTREAM_VARS);
  const messages = [{ role: "user", content: "the-prompt-canary" }];
  const body = { model: "mock/chat", messages, ...fields };
  const response = await ask("/v1/chat/completions", key, body);
  return { response, series: counted(await metrics()) };
}

describe("the gateway during a failed provider call", () => {
  it.each([
    [401, "disabled", ["disabled"]],
    [404, "disabled", ["disabled"]],
    [400, "refused", ["refused"]],
    [429, "overloaded", ["overloaded"]],
    [500, "retry", ["retry", "retry"]],
  ] as const)(
    "logs and counts the provider's status %i as %s",
    async (status, reason, attempts) => {
      const { response, series } = await callProvider(() =>
        upstreamError(status, { message: `no: ${UPSTREAM_SECRET}`, code: "their_word" }),
      );
      expect(failedAttempts()).toEqual(
        attempts.map((kind, i) => ({
          event: "attempt_failed",
          request_id: response.headers.get("x-request-id"),
          provider: "mock",
          upstream_id: "up-chat",
          attempt: i + 1,
          kind,
          status: String(status),
          reason,
        })),
      );
      const labels = `provider="mock",status="${status}",reason="${reason}"`;
      expect(series).toEqual([`turnpike_attempts_failed_total{${labels}} ${attempts.length}`]);
      expect(JSON.stringify(lines)).not.toMatch(/their_word|canary|no: /);
    },
  );

  it("logs and counts a call without a response, with the status 'none'", async () => {
    const { series } = await callProvider(() => Promise.reject(new Error("refused")));
    expect(failedAttempts()).toMatchObject([
      { kind: "retry", status: "none", reason: "connection", attempt: 1 },
      { kind: "retry", status: "none", reason: "connection", attempt: 2 },
    ]);
    expect(series).toEqual([
      'turnpike_attempts_failed_total{provider="mock",status="none",reason="connection"} 2',
    ]);
  });

  it("logs and counts an error inside the provider's stream", async () => {
    const error = { error: { message: "gone", code: 502 } };
    const { response, series } = await callProvider(
      () => brokenStream([chunkOf({ content: "Hi" }, null), error]),
      { stream: true },
    );
    expect(response.status).toBe(200);
    expect(failedAttempts()).toMatchObject([{ provider: "mock", attempt: 1, status: "502" }]);
    expect(series).toEqual([
      'turnpike_attempts_failed_total{provider="mock",status="502",reason="retry"} 1',
    ]);
  });

  it("logs and counts a stream that breaks off", async () => {
    await callProvider(() => brokenStream([chunkOf({ content: "Hi" }, null)]), { stream: true });
    expect(failedAttempts()).toMatchObject([
      { provider: "mock", status: "none", reason: "broken_off" },
    ]);
  });
});
