import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import type { WireReply } from "../fixtures/wire-scenario.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { effort } from "../effort.ts";
import { network } from "../providers/adapter-kit.ts";
import { askAt, saidIn, SPEECH } from "./door-speech.ts";
import type { Call, DoorSpeech } from "./door-speech.ts";

/**
 * A conversation with three tool calls, begun at any door and wire, goes on at another after a 503: in a
 * long run every pair of wires meets once, at doors that take turns. All pairs at the chat door: providers-continue.
 */
const APART = effort(3, 1);
afterEach(() => {
  vi.restoreAllMocks();
});

const DOORS = Object.values(SPEECH);
const DOWN: WireReply = { status: 503, headers: {}, body: "" };
const QUESTION = "The weather in Paris and Rome, and the time?";

/** OpenAI's own host answers its own dialect in that alone, which is a row of its own. */
const speaks = (door: DoorSpeech, { name }: ChatProvider): boolean =>
  door.name !== "responses" || name !== "openai";

const BEGUN = DOORS.flatMap((door, atDoor) =>
  PROVIDERS.filter((wire) => speaks(door, wire)).map((first, at) => ({
    name: door.name,
    wire: first.name,
    door,
    first,
    turn: at + atDoor,
  })),
);

describe.each(BEGUN)("begun at door $name, wire $wire", ({ door, first, turn }) => {
  let key = "";
  let calls: readonly Call[] = [];
  beforeAll(async () => {
    ({ key } = await openOrganization({ credits: 1_000_000_000 }));
    network(first.chat.tools.json);
    const wish = { turns: [door.user(QUESTION)], tools: true };
    ({ calls } = saidIn(door, await askAt(door, { key, providers: [first], wish })));
    vi.restoreAllMocks();
  });

  it("goes on at other wires: each result names its call", async () => {
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    for (const [at, second] of PROVIDERS.entries()) {
      if ((at + DOORS.indexOf(door)) % DOORS.length !== 0) continue;
      if ((at + turn) % APART !== 0) continue;
      const next = DOORS[(turn + at) % DOORS.length] ?? door;
      // oxlint-disable-next-line no-await-in-loop -- one replaced network at a time
      await goOn(speaks(next, second) ? next : door, second);
    }
  });

  async function goOn(next: DoorSpeech, second: ChatProvider): Promise<void> {
    if (!speaks(next, second)) return;
    const isSame = first.id === second.id;
    const { json } = second.chat.text;
    const asked = network(isSame ? [json] : [DOWN, json]);
    const turns = [next.user(QUESTION), ...next.called(calls), ...next.results(calls)];
    const providers = isSame ? [second] : [first, second];
    const got = await askAt(next, { key, providers, wish: { turns, tools: true } });
    expect(saidIn(next, got).text, `${next.name} at ${second.name}`).toBe("Hello, 世界!");
    expect(got.route).toContain(`${second.id}:`);
    const last = asked.at(-1);
    vi.restoreAllMocks();
    if (last === undefined) throw new Error("nobody was asked");
    const sent = second.idsIn(last.json);
    expect(new Set(sent.calls).size, last.text).toBe(3);
    expect(sent.results).toEqual(sent.calls);
    for (const id of sent.calls) expect(String(id)).toMatch(second.idPattern);
  }
});
