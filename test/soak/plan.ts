import type { DisconnectPoint } from "../../scripts/exchange.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { seeded } from "../../scripts/seeded.ts";
import type { Forced, Kind } from "./trace.ts";

/** A kind of request to send. */
type Shape = {
  readonly name: string;
  readonly kind: Kind;
  readonly path: string;
  readonly forced: Forced;
  /** Its weight among the shapes of its load. */
  readonly weight: number;
  /** Returns the body for a prompt and an end user. Null means a GET. */
  readonly body: ((words: string, user: string | null) => object) | null;
};

const CAP = 120;
const STREAM = { stream: true };
const WITH_USAGE = { stream: true, stream_options: { include_usage: true } };

type More = Partial<Pick<Shape, "name" | "kind" | "forced">>;

function chat(model: string, weight: number, fields: object = {}, more: More = {}): Shape {
  const isStream = "stream" in fields;
  return {
    name: isStream ? `${model} stream` : model,
    kind: isStream ? "stream" : "json",
    path: "/chat/completions",
    forced: "nothing",
    weight,
    body: (words, user) => {
      const messages = [{ role: "user", content: words }];
      return { model, messages, max_tokens: CAP, ...(user !== null && { user }), ...fields };
    },
    ...more,
  };
}

function embeddings(model: string, weight: number): Shape {
  const body: Shape["body"] = (words, user) => {
    return { model, input: [words, "b"], ...(user !== null && { user }) };
  };
  return { ...chat(model, weight), kind: "embeddings", path: "/embeddings", body };
}

function read(path: string, weight: number): Shape {
  return { ...chat(`GET ${path}`, weight), kind: "read", path, body: null };
}

const PAID: readonly Shape[] = [
  chat("sandbox/echo", 24),
  chat("sandbox/echo", 14, WITH_USAGE),
  chat("sandbox/echo", 5, STREAM, { name: "sandbox/echo stream untold" }),
  chat("sandbox/split-utf8", 3, WITH_USAGE),
  chat("sandbox/no-usage", 3, WITH_USAGE),
  // takes seconds, so that several are in flight
  chat("sandbox/slow-stream", 1, { ...WITH_USAGE, max_tokens: 20 }),
  chat("sandbox/cut", 1, WITH_USAGE, { forced: "break" }),
  embeddings("sandbox/embed", 9),
  chat("mock/varied", 12),
  chat("mock/varied", 14, WITH_USAGE),
  embeddings("mock/embed", 4),
  chat("mock/flaky", 3),
  chat("mock/flaky", 2, WITH_USAGE),
  chat("mock/broken", 3, {}, { forced: "failure" }),
  chat("mock/cutting", 1, WITH_USAGE, { forced: "break" }),
  chat("mock/busy", 1, {}, { forced: "overload" }),
];
/** Small requests for storms, in which only rejections matter. */
export const PLAIN: readonly Shape[] = [
  chat("sandbox/echo", 6),
  chat("sandbox/echo", 2, WITH_USAGE),
  embeddings("sandbox/embed", 2),
];
const READS: readonly Shape[] = [read("/balance", 3), read("/models", 2), read("/users", 1)];
/** Requests that are always rejected. */
const WRONG: readonly Shape[] = [
  chat("sandbox/nobody", 1, {}, { kind: "wrong", name: "unknown model" }),
  chat("sandbox/echo", 1, { temperature: 3 }, { kind: "wrong", name: "wrong field" }),
  chat("sandbox/echo", 1, {}, { kind: "wrong", name: "wrong region" }),
];
/** Requests with invalid keys, rejected before any call. */
const FORGED: readonly Shape[] = [
  chat("sandbox/echo", 3, {}, { kind: "forged", name: "forged JSON" }),
  chat("sandbox/echo", 1, WITH_USAGE, { kind: "forged", name: "forged stream" }),
];

const WORDS =
  "the sky over the bay is blue because small things scatter light of short waves".split(" ");

/**
 * Returns a prompt of 1 to 60 words, short enough that its hold uses an upper bound instead of an
 * estimate.
 */
export function wordsOf(random: number): string {
  const count = 1 + Math.floor(random * 60);
  return Array.from({ length: count }, (_, i) => WORDS[(i * 7 + count) % WORDS.length]).join(" ");
}

/**
 * Senders: the busy organization, any other, those with end users, those that run out of credits,
 * keys with low limits, and forged keys.
 */
export type Sender = "hot" | "any" | "users" | "dry" | "small" | "forger";

/** A planned request. Numbers from 0 to 1 choose among the available items. */
export type Arrival = {
  /** Since the start of the load. */
  readonly atMs: number;
  readonly sender: Sender;
  readonly shape: Shape;
  readonly which: number;
  readonly key: number;
  readonly words: number;
  readonly user: number;
  readonly leave: DisconnectPoint | null;
  readonly isSlow: boolean;
};

const LEAVE_SHARE = 0.3;
const SLOW_SHARE = 0.04;
/** Time between storms in a long run. A short run has five. */
const STORM_EVERY_MS = 9000;
/** Share of that time that a storm lasts. */
const STORM_SHARE = 1 / 6;

/** Each sender's share of the load, and its requests. */
const LOADS: readonly (readonly [Sender, share: number, readonly Shape[]])[] = [
  ["hot", 22, PAID],
  ["any", 36, PAID],
  ["users", 10, PLAIN],
  ["dry", 7, PLAIN],
  ["small", 8, PLAIN],
  ["forger", 8, FORGED],
  ["any", 6, READS],
  ["any", 3, WRONG],
];
/** The senders of storms, in order. */
const STORMS: readonly Sender[] = ["forger", "dry", "small", "users"];

/** Returns an unplanned request, sent with any key. */
export function unplanned(shape: Shape): Arrival {
  const choices = { which: 0, key: 0, words: 0.1, user: 0 };
  return { atMs: 0, sender: "any", shape, ...choices, leave: null, isSlow: false };
}

/** A run's length, request rate and the seed of both plans. */
type Planned = { readonly seed: number; readonly rate: number; readonly durationMs: number };

/** Yields every request of the load in order of time. The same seed gives the same requests. */
export function* arrivals({ seed, rate, durationMs }: Planned): Generator<Arrival> {
  const random = seeded(seed);
  const gapMs = 1000 / rate;
  const everyMs = Math.min(STORM_EVERY_MS, durationMs / 5);
  let storm = 0;
  for (let at = 0; at < durationMs; at += gapMs) {
    const phase = at % everyMs;
    const load = pick(LOADS, ([, share]) => share, random());
    yield arrival(at + random() * gapMs, load, random);
    if (phase < gapMs) storm++;
    const stormy = LOADS.find(([sender]) => sender === STORMS[storm % STORMS.length]);
    if (phase < everyMs * (1 - STORM_SHARE) || stormy === undefined) continue;
    // doubles the requests, all of one organization and of one end user with a small quota
    const round = Math.floor(storm / STORMS.length);
    const aim = { which: (round % 5) / 5, user: (3 + (round % 2) + 0.5) / 6 };
    yield { ...arrival(at + gapMs, stormy, random), ...aim };
  }
}

function arrival(
  atMs: number,
  [sender, , shapes]: (typeof LOADS)[number],
  random: () => number,
): Arrival {
  const shape = pick(shapes, ({ weight }) => weight, random());
  const mayLeave = !["read", "forged", "wrong"].includes(shape.kind);
  const choices = { which: random(), key: random(), words: random(), user: random() };
  const leave = random() < LEAVE_SHARE && mayLeave ? leaveOf(random) : null;
  const isSlow = random() < SLOW_SHARE && shape.kind === "stream";
  return { atMs, sender, shape, ...choices, leave, isSlow };
}

/** Returns a disconnect: immediately, before or at the first byte, mid-stream, or at any time. */
function leaveOf(random: () => number): DisconnectPoint {
  const [kind, how] = [random(), random()];
  if (kind < 0.15) return { afterMs: 0 };
  if (kind < 0.45) return { afterMs: how * 40 };
  if (kind < 0.6) return { afterBytes: 1 };
  return kind < 0.85 ? { afterBytes: Math.ceil(how * 6000) } : { afterMs: how * 1500 };
}

/** Returns an item with a probability by weight. */
function pick<T>(all: readonly T[], weightOf: (one: T) => number, at: number): T {
  let remaining = at * all.reduce((sum, one) => sum + weightOf(one), 0);
  const found = all.find((one) => (remaining -= weightOf(one)) < 0) ?? all.at(-1);
  if (found === undefined) throw new Error("nothing to pick from");
  return found;
}

/**
 * A planned fault. `mode` is its variant, and `some` from 0 to 1 chooses among the available items.
 */
export type PlannedFault = {
  readonly what: keyof typeof FAULTS;
  readonly atMs: number;
  readonly region: PairName;
  readonly some: number;
  readonly mode: string | null;
  readonly forMs: number;
};

/**
 * For each fault: its interval in a long run (short runs have at least two), the share of the run
 * in which it occurs (memory is measured after the last restart), its variants in order, and its
 * length.
 */
const FAULTS = {
  abort: { everyMs: 4000 },
  book: { everyMs: 17_000, until: 0.93, modes: ["refuse", "lose", "hang"], forMs: 2000 },
  link: {
    everyMs: 13_000,
    until: 0.93,
    modes: ["refuse", "drop", "lose-reply", "reset-after", "duplicate"],
    forMs: 1500,
  },
  kill: { everyMs: 13_000, until: 0.5 },
  cron: { everyMs: 31_000 },
  revoke: { everyMs: 1700 },
} satisfies Record<string, Fault>;
type Fault = {
  readonly everyMs: number;
  readonly until?: number;
  readonly modes?: readonly string[];
  readonly forMs?: number;
};

/** Returns every fault of the run in order of time, alternating between regions. */
export function faultPlan(seed: number, durationMs: number): readonly PlannedFault[] {
  const random = seeded(seed + 1);
  const plan = Object.entries<Fault>(FAULTS).flatMap(([name, fault]) => {
    const { until = 0.97, modes = [], forMs = 0 } = fault;
    const untilMs = durationMs * until;
    const everyMs = Math.min(fault.everyMs, untilMs / 2.5);
    return Array.from({ length: Math.floor(untilMs / everyMs) }, (_, i): PlannedFault => {
      const what = name as PlannedFault["what"];
      const atMs = Math.round((i + 0.6 + random() * 0.4) * everyMs);
      const some = random();
      const region = i % 2 === 0 ? "eu" : "us";
      const mode = modes[i % modes.length] ?? null;
      return { what, atMs, region, some, mode, forMs: forMs + some * 4000 };
    });
  });
  return plan.toSorted((a, b) => a.atMs - b.atMs);
}
