import { cpuOf, progress, ratioOf } from "./figure.ts";
import type { CpuRound, Figure, Report } from "./figure.ts";
import { startGateway } from "./gateway.ts";
import type { Stage } from "./gateway.ts";
import { MESSAGES, run, turned } from "./load.ts";
import type { Ask, Asked, Kind, Target } from "./load.ts";
import { cpuInTurn, keysFor, KINDS } from "./rounds.ts";

/** A door as the load speaks it: its path below /v1, and a request with what its whole answer ends with. */
type DoorLoad = { readonly path: string; readonly ask: (ask: Ask) => Asked };
/** CPU per request of each round, by door. */
export type Doors = Readonly<Record<Kind, readonly CpuRound[]>>;

/** A door's CPU beside that of chat in the same round. */
const RATIO_MAX = 1.3;
const [SYSTEM, USER] = MESSAGES.map(({ content }) => content);

const asked = (body: object, { kind }: Ask, stream: string): Asked => ({
  body: JSON.stringify({ model: "bench/model", ...body, stream: kind === "stream" }),
  ending: kind === "stream" ? stream : "}",
});

function responses(ask: Ask, model = "bench/model"): Asked {
  const cap = Math.max(16, ask.words);
  const body = { model, instructions: SYSTEM, input: USER, max_output_tokens: cap };
  return asked(body, ask, "data: [DONE]\n\n");
}

function messages(ask: Ask, model = "bench/model"): Asked {
  const said = [{ role: "user", content: USER }];
  const body = { model, system: SYSTEM, messages: said, max_tokens: ask.words };
  return asked(body, ask, 'data: {"type":"message_stop"}\n\n');
}

/** Every text door over an upstream that speaks OpenAI's chat, converted both ways but for chat itself; and natively. */
const DOOR_LOADS: Readonly<Record<string, DoorLoad>> = {
  chat: {
    path: "chat/completions",
    ask: (ask) => asked({ messages: MESSAGES, max_tokens: ask.words }, ask, "data: [DONE]\n\n"),
  },
  completions: {
    path: "completions",
    ask: (ask) =>
      asked({ prompt: `${SYSTEM}\n${USER}`, max_tokens: ask.words }, ask, "data: [DONE]\n\n"),
  },
  responses: { path: "responses", ask: responses },
  "responses natively": {
    path: "responses",
    ask: (ask) => responses(ask, "bench/responses"),
  },
  messages: { path: "messages", ask: messages },
  "messages natively": { path: "messages", ask: (ask) => messages(ask, "bench/messages") },
};

/** Rounds in which every door takes a slice of each kind at home, in the opposite order each time. */
export async function measureDoors(stage: Stage, rounds: number): Promise<Report> {
  const loads = Object.entries(DOOR_LOADS);
  const places = { place: "gateway", keys: keysFor(rounds, loads.length) };
  const { home } = await startGateway(stage, places);
  const { url, keys, pids } = home;
  const doors = loads.map(([name, { path: below, ask }]): Target => {
    return { name, url: url.replace("chat/completions", below), keys, pids, ask };
  });
  progress("warming up");
  for (const target of doors) {
    await run({ kind: "json", words: 256, requests: 600, concurrency: 8, target });
    await run({ kind: "stream", words: 200, requests: 16, concurrency: 8, target });
  }
  const measured: Record<Kind, CpuRound[]> = { json: [], stream: [] };
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    for (const kind of KINDS) measured[kind].push(await cpuInTurn(turned(doors, round), kind));
  }
  return { figures: doorFigures(measured), more: { rounds: measured } };
}

/** What each door costs, and its part of chat's cost in the same round. */
export function doorFigures(doors: Doors): Figure[] {
  return Object.keys(DOOR_LOADS).flatMap((name) =>
    KINDS.flatMap((kind) => {
      const what = `CPU per ${kind === "json" ? "JSON" : "stream"}, door ${name}`;
      const used: Figure = { name: what, unit: "us", ...cpuOf(doors[kind], name) };
      if (name === "chat") return [used];
      const ratio = ratioOf(doors[kind], name, "chat");
      return [used, { name: `${what} to chat`, unit: "x", ...ratio, budget: RATIO_MAX }];
    }),
  );
}
