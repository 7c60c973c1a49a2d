import { describe, expect, it } from "vitest";
import { success } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import { sendResponse } from "../../src/models/requests/send-response.ts";
import { ENDPOINTS } from "../../src/models/endpoints/endpoints.ts";
import type { RunServices } from "../../src/models/requests/paid-request.ts";
import { settleAndRespond } from "../../src/models/requests/settle.ts";
import type { EventStream, StreamEvent } from "../../src/models/core/provider.ts";
import type { SettleResult } from "../../src/shared/contracts/wallet.ts";
import { ENDPOINT_ROWS } from "../fixtures/endpoint-table.ts";
import type { EndpointRow } from "../fixtures/endpoint-table.ts";
import { asResponse, runOf, SERVING, USAGE, walletOf } from "./run-fixture.ts";

const CHOICE = { index: 0, finish_reason: null };
const EVENTS: readonly StreamEvent[] = [
  { kind: "chunk", chunk: { choices: [{ ...CHOICE, delta: { role: "assistant", content: "" } }] } },
  { kind: "chunk", chunk: { choices: [{ ...CHOICE, delta: { content: "hel" } }] } },
  { kind: "text", index: 0, json: '"lo"' },
  { kind: "piece", index: 1, text: "lo", isPartial: false },
  { kind: "audio", bytes: new TextEncoder().encode("lo") },
  { kind: "audio", bytes: Uint8Array.fromBase64("lost") },
  { kind: "chunk", chunk: { choices: [{ ...CHOICE, delta: {}, finish_reason: "stop" }] } },
  { kind: "usage", usage: USAGE },
  { kind: "end" },
];

function once(events: readonly StreamEvent[]): EventStream {
  const batches = [events];
  return { next: () => Promise.resolve(batches.shift() ?? null), cancel: () => undefined };
}

/** Runs a row's stream. The test decides when the wallet confirms the charge. */
function runThrough({ name, body }: EndpointRow) {
  const endpoint = ENDPOINTS.find((one) => one.name === name);
  if (endpoint === undefined) throw new Error(`no endpoint ${name}`);
  const parsed = endpoint.parse(body({ model: "sandbox/echo", text: "x", stream: true }), {
    header: () => undefined,
    query: () => undefined,
  });
  if (!parsed.ok) throw new Error("the row's body is refused");
  const charged = Promise.withResolvers<SettleResult>();
  const called = Promise.withResolvers<null>();
  const wallet = () =>
    walletOf({
      settle: async () => {
        called.resolve(null);
        return success(await charged.promise);
      },
      void: () => Promise.reject(new Error("nothing is voided")),
    });
  const numbers = { UPSTREAM_IDLE_MS: 60_000, KEEP_ALIVE_MS: 60_000, READER_STUCK_MS: 60_000 };
  const answered = Promise.withResolvers<Response>();
  const run = {
    ...runOf({ wallet, numbers: numbers as RunServices["numbers"] }),
    endpoint,
    respond: asResponse(answered.resolve),
  };
  run.request = {
    ...run.request,
    reply: parsed.value.reply,
    cap: { whole: 100, least: 64, choices: 1, isAsked: true },
  };
  return { run, called: called.promise, charged, answered: answered.promise };
}

const STREAMED = ENDPOINT_ROWS.filter(({ streams }) => streams !== false);
/** Rows whose response without a stream is a file, and that response. */
const FILES = STREAMED.filter(({ streams }) => streams === "always").map((row): EndpointRow => {
  const body: EndpointRow["body"] = ({ model, text }) => row.body({ model, text });
  return Object.assign({}, row, { title: `${row.name} as a file`, body, last: /^lo.+$/s });
});

describe.each([...STREAMED, ...FILES])("a stream of the endpoint $title", (row) => {
  it("sends the last event only after the wallet has stored the charge", async () => {
    const { run, called, charged, answered } = runThrough(row);
    const done = Promise.resolve(
      sendResponse(run, SERVING, { kind: "stream", events: once(EVENTS) }),
    ).then((ended) => settleAndRespond(run, ended));
    const reader = (await answered).body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let isOver = false;
    const read = (async () => {
      for (;;) {
        const part = await reader?.read();
        if (part === undefined || part.done) break;
        text += part.value;
      }
      isOver = true;
    })();
    await called;
    await expect.poll(() => text).toContain("lo");
    expect(isOver).toBe(false);
    expect(text).not.toMatch(row.last);
    charged.resolve({ kind: "settled", charged: micros(7), shortfall: micros(0) });
    await Promise.all([done, read]);
    run.timers.close();
    expect(text).toMatch(row.last);
    expect(text).toContain(FILES.includes(row) ? "lo" : '"cost_micro":7');
  });
});
