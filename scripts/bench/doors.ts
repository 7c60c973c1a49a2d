import path from "node:path";
import { startUpstream } from "./bare-workers.ts";
import { cpuOf, ratioOf } from "./estimate.ts";
import type { CpuRound } from "./estimate.ts";
import type { Figure } from "./figure.ts";
import { startGateway } from "./gateway.ts";
import { MESSAGES, run } from "./load.ts";
import type { Asked } from "./load.ts";
import { progress } from "./progress.ts";
import { cpuOfSlice, requestsOf } from "./rounds.ts";
import type { Ask, Kind, Stoppable, Target } from "./target.ts";

/** A door as the load speaks it: its path below /v1, and a request with what its whole answer ends with. */
type DoorLoad = { readonly path: string; readonly ask: (ask: Ask) => Asked };
export type Doors = Readonly<Record<string, Readonly<Record<Kind, readonly CpuRound[]>>>>;

const KINDS = ["json", "stream"] as const;
const KEY_PER_MINUTE = 1000;
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
export async function measureDoors(
  rounds: number,
  directory: string,
  stops: Stoppable[],
): Promise<Doors> {
  const upstream = await startUpstream();
  stops.push(upstream);
  const names = Object.keys(DOOR_LOADS);
  const keys = Math.ceil((1.5 * names.length * requestsOf(rounds)) / KEY_PER_MINUTE);
  const place = { upstream: upstream.base, directory: path.join(directory, "gateway") };
  const gateway = await startGateway({ ...place, keys });
  stops.push(gateway);
  const { home } = gateway;
  progress("warming up");
  for (const load of Object.values(DOOR_LOADS)) {
    for (const kind of KINDS) await warm(targetOf(home, load), load, kind);
  }
  const measured = new Map<string, Rounds>(names.map((name) => [name, { json: [], stream: [] }]));
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    for (const kind of KINDS) {
      const cpu = await cpuInTurn(home, kind, round % 2 === 0 ? names : names.toReversed());
      const chat = cpu.get("chat") ?? NaN;
      for (const [name, used] of cpu) measured.get(name)?.[kind].push({ home: used, floor: chat });
    }
  }
  return Object.fromEntries(measured);
}

/** CPU per request of one door after the other. */
async function cpuInTurn(
  home: Target,
  kind: Kind,
  names: readonly string[],
): Promise<Map<string, number>> {
  const cpu = new Map<string, number>();
  for (const name of names) {
    const load = DOOR_LOADS[name];
    if (load !== undefined) cpu.set(name, await cpuOfSlice(targetOf(home, load), kind, load.ask));
  }
  return cpu;
}

type Rounds = Record<Kind, CpuRound[]>;

function targetOf(home: Target, { path: below }: DoorLoad): Target {
  return { ...home, url: home.url.replace("chat/completions", below) };
}

function warm(target: Target, { ask }: DoorLoad, kind: Kind): Promise<unknown> {
  const share = kind === "json" ? { words: 256, requests: 600 } : { words: 200, requests: 16 };
  return run({ ...share, kind, concurrency: 8, target, prepared: ask });
}

/** What each door costs, and its part of chat's cost in the same round. */
export function doorFigures(doors: Doors): Figure[] {
  return Object.entries(doors).flatMap(([name, byKind]) =>
    KINDS.flatMap((kind) => {
      const what = `CPU per ${kind === "json" ? "JSON" : "stream"}, door ${name}`;
      const used: Figure = { name: what, unit: "us", ...cpuOf(byKind[kind], "home") };
      if (name === "chat") return [used];
      const ratio = ratioOf(byKind[kind], "home", "floor");
      return [used, { name: `${what} to chat`, unit: "x", ...ratio, budget: RATIO_MAX }];
    }),
  );
}
