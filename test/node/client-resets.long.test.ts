import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { MockScript } from "../fixtures/openai-mock.ts";
import { CHUNK, DONE, FINISH, USAGE, usageChunk } from "../fixtures/openai-replies.ts";
import { ends, HELLO, stays, steps, stream } from "./support/stream-scripts.ts";
import { scripted, startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { UpstreamFixture } from "./support/upstream-fixture.ts";

/** Micro-credits for 12 prompt tokens at 1 and 3 output tokens at 2. */
const EXACT = 18;
/** The estimate of every prompt, in tokens and micro-credits. */
const PROMPT = 26;

const CHOICE = {
  index: 0,
  message: { role: "assistant", content: "Hello" },
  finish_reason: "stop",
};
const WHOLE = JSON.stringify({
  ...CHUNK,
  object: "chat.completion",
  choices: [CHOICE],
  usage: USAGE,
});
const rest = [FINISH, usageChunk(), DONE];

const later = (ms: number, status: number, type: string, body: string): MockScript =>
  scripted(async (response) => {
    await sleep(ms);
    response.writeHead(status, { "content-type": type }).end(body);
  });
/** Responds after the client disconnected, which the gateway notices in the meantime. */
const onceLeft = (status: number, type: string, body: string): MockScript =>
  scripted(async (response) => {
    await disconnected.promise;
    await sleep(HEARD_MS);
    response.writeHead(status, { "content-type": type }).end(body);
  });
const HEARD_MS = 100;
/** Resolves when the test's client has disconnected. */
let disconnected = Promise.withResolvers<void>();

let fixture: UpstreamFixture;
beforeAll(async () => {
  fixture = await startUpstreamFixture({
    models: {
      "slow-stream": ["slow-stream"],
      "slow-json": ["slow-json"],
      never: ["mock-silent"],
      "slow-then-fails": ["slow-500", "second"],
      "second-never": ["fast-500", "mock-silent@2"],
      "late-usage": ["late-usage"],
      "no-usage": ["no-usage"],
      good: ["good"],
    },
    scripts: {
      "slow-stream": onceLeft(200, "text/event-stream", stream(...HELLO, ...rest)),
      "slow-json": onceLeft(200, "application/json", WHOLE),
      "slow-500": onceLeft(500, "application/json", "{}"),
      "fast-500": later(10, 500, "application/json", "{}"),
      "late-usage": steps(100, stream(...HELLO), FINISH, stream(usageChunk(), DONE)),
      "no-usage": stays(...HELLO),
      good: ends(...HELLO, ...rest),
    },
    bindings: { DRAIN_S: "3" },
  });
});
afterAll(() => fixture.stop());

type Leaving = {
  readonly model: string;
  readonly stream: boolean;
  /** Disconnects after this text and this number of provider requests. */
  readonly seen?: string;
  readonly requests: number;
  readonly micro: number;
  readonly estimated?: true;
  /** Charges output by time, because the progress of a JSON response is invisible. */
  readonly byTime?: true;
};
const silent = { micro: PROMPT, estimated: true } as const;
const never = { model: "never", requests: 1, ...silent };
const LEAVING: Readonly<Record<string, Leaving>> = {
  "before the headers of a stream": {
    model: "slow-stream",
    stream: true,
    requests: 1,
    micro: EXACT,
  },
  "before the headers of JSON": { model: "slow-json", stream: false, requests: 1, micro: EXACT },
  "before a stream that never starts": { ...never, stream: true },
  "before a JSON response that never arrives": { ...never, stream: false, byTime: true },
  "while the first route is failing": {
    model: "slow-then-fails",
    stream: true,
    requests: 1,
    micro: 0,
  },
  "while the second route is silent": {
    ...silent,
    model: "second-never",
    stream: true,
    requests: 2,
  },
  "after the last text, before usage": {
    model: "late-usage",
    stream: true,
    seen: "Hello",
    requests: 1,
    micro: EXACT,
  },
  "in a stream whose usage never arrives": {
    model: "no-usage",
    stream: true,
    seen: "Hello",
    requests: 1,
    micro: PROMPT + 2,
    estimated: true,
  },
  "after [DONE]": { model: "good", stream: true, seen: "[DONE]", requests: 1, micro: EXACT },
};

describe("a client that resets its connection", () => {
  it.each(Object.entries(LEAVING))(
    "gets the rest of its hold back, pays once and ends the provider's request: %s",
    async (_, at) => {
      disconnected = Promise.withResolvers();
      const { key, orgId } = await fixture.organization();
      const before = fixture.mock.requests.length;
      const client = await fixture.open(key, at.model, { stream: at.stream });
      await expect.poll(() => fixture.mock.requests.length - before).toBe(at.requests);
      await client.readUntil((received) => received.includes(at.seen ?? ""));
      await client.reset();
      disconnected.resolve();
      const { micro, held, records } = await fixture.spent(orgId);
      const output = at.byTime === true ? (records[0]?.usage.output ?? 0) : 0;
      expect(output > 0).toBe(at.byTime === true);
      expect({ micro, held }).toEqual({ micro: at.micro + 2 * output, held: 0 });
      expect(records).toMatchObject(at.micro === 0 ? [] : [{ estimated: at.estimated === true }]);
      expect(fixture.mock.requests.length - before).toBe(at.requests);
      await expect.poll(fixture.inFlight).toBe(0);
    },
  );
});
