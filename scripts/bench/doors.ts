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

/** The allowed ratio of an endpoint's CPU to chat's in the same round. */
const RATIO_MAX = 1.3;
const [SYSTEM, USER] = MESSAGES.map(({ content }) => content);

const CHAT_END = "data: [DONE]\n\n";
const MESSAGES_END = 'data: {"type":"message_stop"}\n\n';

/** Returns an endpoint with its request and the end of its streams. */
function door(path: string, fields: (words: number) => object, end = CHAT_END): DoorLoad {
  return {
    path,
    ask: ({ kind, words }) => ({
      body: JSON.stringify({ model: "bench/model", ...fields(words), stream: kind === "stream" }),
      ending: kind === "stream" ? end : "}",
    }),
  };
}

function responses(more: object = {}): DoorLoad {
  const said = { instructions: SYSTEM, input: USER, ...more };
  return door("responses", (words) => ({ ...said, max_output_tokens: Math.max(16, words) }));
}

function messages(more: object = {}): DoorLoad {
  const said = { system: SYSTEM, messages: [{ role: "user", content: USER }], ...more };
  return door("messages", (max_tokens) => ({ ...said, max_tokens }), MESSAGES_END);
}

/** Every text door over an upstream that speaks OpenAI's chat, converted both ways but for chat itself; and natively. */
const DOOR_LOADS: Readonly<Record<string, DoorLoad>> = {
  chat: door("chat/completions", (max_tokens) => ({ messages: MESSAGES, max_tokens })),
  completions: door("completions", (max_tokens) => ({ prompt: `${SYSTEM}\n${USER}`, max_tokens })),
  responses: responses(),
  "responses natively": responses({ model: "bench/responses" }),
  messages: messages(),
  "messages natively": messages({ model: "bench/messages" }),
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

/** Returns each endpoint's cost, and its ratio to chat's in the same round. */
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
