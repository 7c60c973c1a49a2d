import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { MessagesStreamReader } from "../../src/models/protocols/messages/host-messages-reader.ts";
import { ClaudeNativeReader as NativeMessages } from "../../src/models/protocols/messages/host-native.ts";
import {
  ResponsesChunkReader as ResponsesReader,
  ResponsesNativeReader as NativeResponses,
} from "../../src/models/protocols/responses/host-stream.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import { estimateHiddenReasoningTokens } from "../../src/models/requests/hidden-reasoning.ts";
import { StreamMeter } from "../../src/models/requests/stream-meter.ts";

/** The form of a model's reasoning. `hidden`: not sent at all. */
type Shown = "none" | "whole" | "summary" | "sealed" | "hidden";
/** An event that a provider sends after it has written this number of tokens. */
type Sent = { readonly tokens: number; readonly payload: object };
type Plan = {
  readonly shown: Shown;
  readonly rounds: readonly { readonly thought: number; readonly text: number }[];
};

const word = (tokens: number): string => " word".repeat(tokens);
/** Returns encrypted text in base64 of four bytes per token. */
const seal = (tokens: number): string => "A".repeat(Math.ceil((tokens * 16) / 3));
const SUMMARY_SHARE = 10;
/** Tokens between two pieces of text. */
const PIECE = 5;

/**
 * Returns the events of one protocol for a plan. Each writer starts, shows and ends reasoning and
 * text.
 */
function sentBy({ shown, rounds }: Plan, write: Writer): Sent[] {
  const sent: Sent[] = [];
  let tokens = 0;
  const send = (...payloads: readonly (object | null)[]): void => {
    for (const payload of payloads) if (payload !== null) sent.push({ tokens, payload });
  };
  const sendThought = (thought: number, index: number): void => {
    const step = shown === "whole" ? PIECE : PIECE * SUMMARY_SHARE;
    const isSeen = shown === "whole" || shown === "summary";
    send(...write.begin(shown, index));
    for (let done = step; done < thought; done += step) {
      tokens += step;
      send(isSeen ? write.think(word(PIECE), index) : null);
    }
    tokens += thought % step;
    send(...write.end(shown, seal(thought), index));
  };
  for (const [round, { thought, text }] of rounds.entries()) {
    if (shown !== "none") sendThought(thought, round * 2);
    for (let done = 0; done < text; done += PIECE) {
      tokens += PIECE;
      send(write.text(word(PIECE), round * 2 + 1));
    }
  }
  return sent;
}

type Writer = {
  begin(shown: Shown, index: number): (object | null)[];
  think(text: string, index: number): object;
  end(shown: Shown, sealed: string, index: number): (object | null)[];
  text(text: string, index: number): object;
};

const chunk = (delta: object) => ({ choices: [{ index: 0, delta, finish_reason: null }] });
const CHAT: Writer = {
  begin: () => [],
  think: (text) => chunk({ reasoning_content: text }),
  end: () => [],
  text: (content) => chunk({ content }),
};
const delta = (index: number, piece: object) => ({
  type: "content_block_delta",
  index,
  delta: piece,
});
const MESSAGES: Writer = {
  begin: (_, index) => [
    {
      type: "content_block_start",
      index,
      content_block: { type: "thinking", thinking: "", signature: "" },
    },
  ],
  think: (thinking, index) => delta(index, { type: "thinking_delta", thinking }),
  end: (_, signature, index) => [
    delta(index, { type: "signature_delta", signature }),
    { type: "content_block_stop", index },
  ],
  text: (text, index) => delta(index, { type: "text_delta", text }),
};
const RESPONSES: Writer = {
  begin: (shown, output_index) =>
    shown === "hidden"
      ? []
      : [{ type: "response.output_item.added", output_index, item: { type: "reasoning" } }],
  think: (piece, output_index) => ({
    type: "response.reasoning_summary_text.delta",
    output_index,
    delta: piece,
  }),
  end(shown, encrypted_content, output_index) {
    if (shown === "hidden") return [];
    const item = { type: "reasoning", summary: [], encrypted_content };
    return [{ type: "response.output_item.done", output_index, item }];
  },
  text: (piece, output_index) => ({
    type: "response.output_text.delta",
    output_index,
    delta: piece,
  }),
};

type Reader = { read(data: string, name: string): StreamEvent[] };
type Protocol = {
  readonly name: string;
  readonly write: Writer;
  readonly reader: () => Reader;
  readonly shown: readonly Shown[];
};
const SUMMARIZING: readonly Shown[] = ["none", "summary", "sealed"];
const PROTOCOLS: readonly Protocol[] = [
  {
    name: "chat",
    write: CHAT,
    reader: () => new ChatChunkReader(),
    shown: ["none", "whole", "hidden"],
  },
  {
    name: "messages, converted",
    write: MESSAGES,
    reader: () => new MessagesStreamReader(null, ""),
    shown: SUMMARIZING,
  },
  {
    name: "messages, native",
    write: MESSAGES,
    reader: () => new NativeMessages("", false),
    shown: SUMMARIZING,
  },
  {
    name: "responses, converted",
    write: RESPONSES,
    reader: () => new ResponsesReader(),
    shown: [...SUMMARIZING, "hidden"],
  },
  {
    name: "responses, native",
    write: RESPONSES,
    reader: () => new NativeResponses(),
    shown: [...SUMMARIZING, "hidden"],
  },
];

function meterEvents(meter: StreamMeter, events: readonly StreamEvent[]): void {
  for (const event of events) {
    if (event.kind === "chunk") meter.addChunk(event.chunk);
    else if (event.kind === "text") meter.addText(event.json);
    else if (event.kind === "native") meter.addNativeEvent(event);
    else if (event.kind === "thinking") meter.beginHiddenReasoning();
  }
}

const CASES = PROTOCOLS.flatMap((protocol) =>
  protocol.shown.map((shown) => [protocol.name, shown, protocol] as const),
);
const plannedRounds = fc.array(
  fc.record({ thought: fc.integer({ min: 0, max: 3000 }), text: fc.integer({ max: 60, min: 5 }) }),
  { minLength: 1, maxLength: 2 },
);
/** Tolerance in tokens for estimates of small outputs. */
const SLACK = 30;

describe.each(CASES)(
  "a client that disconnects, %s, visible reasoning: %s",
  (_, shown, protocol) => {
    const isExact = shown === "none" || shown === "whole";
    const summarizes = protocol.name !== "chat";
    it("always pays for at least half of the output so far", () => {
      fc.assert(
        fc.property(
          plannedRounds,
          fc.integer({ min: 50, max: 200 }),
          fc.double({ min: 0, max: 1, noNaN: true }),
          (planned, pace, share) => {
            const sent = sentBy({ shown, rounds: planned }, protocol.write);
            const msOf = (tokens: number): number => (tokens * 1000) / pace;
            const whole = sent.at(-1)?.tokens ?? 0;
            for (const disconnectedAt of [
              sent[Math.floor(share * (sent.length - 1))]?.tokens,
              share * whole,
            ]) {
              const tokens = disconnectedAt ?? 0;
              const model = { mayThink: shown !== "none", summarizes, askedMs: 0 };
              const meter = new StreamMeter(1, model);
              const reader = protocol.reader();
              for (const one of sent.filter((event) => event.tokens <= tokens)) {
                meter.recordEvent(msOf(one.tokens));
                meterEvents(meter, reader.read(JSON.stringify(one.payload), ""));
              }
              const estimate = meter.outputUntil(msOf(tokens));
              expect(estimate).toBeGreaterThanOrEqual(tokens / 2 - SLACK);
              expect(estimate).toBeLessThanOrEqual(isExact ? tokens + SLACK : Infinity);
            }
          },
        ),
      );
    });

    it("keeps the provider's stream open only as long as the provider may be hiding reasoning", () => {
      const plan = { shown, rounds: [{ thought: 1000, text: 10 }] };
      const meter = new StreamMeter(1, { mayThink: shown !== "none", summarizes, askedMs: 0 });
      const reader = protocol.reader();
      for (const { tokens, payload } of sentBy(plan, protocol.write)) {
        meter.recordEvent(tokens * 10);
        meterEvents(meter, reader.read(JSON.stringify(payload), ""));
      }
      expect(meter.mayHide).toBe(shown === "hidden");
    });
  },
);

it("the gateway estimates hidden output at 100 tokens per second", () => {
  expect(estimateHiddenReasoningTokens(1500)).toBe(150);
});
