import type { Leave } from "../../scripts/exchange.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { seeded } from "../../scripts/seeded.ts";
import type { Forced, Kind } from "./trace.ts";

/** A form of request. */
type Shape = {
  readonly name: string;
  readonly kind: Kind;
  readonly path: string;
  readonly forced: Forced;
  /** Its weight among the forms of its load. */
  readonly weight: number;
  /** The body for a prompt and an end user; null is a GET. */
  readonly body: ((words: string, user: string | null) => object) | null;
};

const CAP = 120;
const STREAM = { stream: true };
const TOLD = { stream: true, stream_options: { include_usage: true } };

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

/** Paid requests. */
const PAID: readonly Shape[] = [
  chat("sandbox/echo", 24),
  chat("sandbox/echo", 14, TOLD),
  chat("sandbox/echo", 5, STREAM, { name: "sandbox/echo stream untold" }),
  chat("sandbox/split-utf8", 3, TOLD),
  chat("sandbox/no-usage", 3, TOLD),
  chat("sandbox/slow-stream", 1, { ...TOLD, max_tokens: 20 }), // takes seconds, so that several are in flight
  chat("sandbox/cut", 1, TOLD, { forced: "break" }),
  embeddings("sandbox/embed", 9),
  chat("mock/varied", 12),
  chat("mock/varied", 14, TOLD),
  embeddings("mock/embed", 4),
  chat("mock/flaky", 3),
  chat("mock/flaky", 2, TOLD),
  chat("mock/broken", 3, {}, { forced: "failure" }),
  chat("mock/cutting", 1, TOLD, { forced: "break" }),
  chat("mock/busy", 1, {}, { forced: "overload" }),
];
/** Small and alike: for storms, in which what is refused matters. */
export const PLAIN: readonly Shape[] = [
  chat("sandbox/echo", 6),
  chat("sandbox/echo", 2, TOLD),
  embeddings("sandbox/embed", 2),
];
/** Free requests. */
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
  chat("sandbox/echo", 1, TOLD, { kind: "forged", name: "forged stream" }),
];

const WORDS =
  "the sky over the bay is blue because small things scatter light of short waves".split(" ");

/** A prompt of 1 to 60 words: below the size at which a hold is estimated and no longer bounded. */
export function wordsOf(random: number): string {
  const count = 1 + Math.floor(random * 60);
  return Array.from({ length: count }, (_, i) => WORDS[(i * 7 + count) % WORDS.length]).join(" ");
}

/**
 * The sender: the hot organization, any other, those with end users, those that run out of credits, keys with
 * low limits, forgers.
 */
export type Sender = "hot" | "any" | "users" | "dry" | "small" | "forger";

/** A request to come. Numbers from 0 to 1 choose among what there is. */
export type Arrival = {
  /** Since the start of the load. */
  readonly atMs: number;
  readonly sender: Sender;
  readonly shape: Shape;
  readonly which: number;
  readonly key: number;
  readonly words: number;
  readonly user: number;
  readonly leave: Leave | null;
  readonly isSlow: boolean;
};

const LEAVE_SHARE = 0.3;
const SLOW_SHARE = 0.04;
/** In a long run; a shorter one has five. */
const STORM_EVERY_MS = 9000;
/** The share of that time that a storm lasts. */
const STORM_SHARE = 1 / 6;

/** Senders and their share of the load, and what they send. */
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
/** The senders of storms, in turn. */
const STORMS: readonly Sender[] = ["forger", "dry", "small", "users"];

/** Returns a request beside the plan, sent with any key. */
export function unplanned(shape: Shape): Arrival {
  const choices = { which: 0, key: 0, words: 0.1, user: 0 };
  return { atMs: 0, sender: "any", shape, ...choices, leave: null, isSlow: false };
}

/** A run's length, its requests, and the seed of both plans. */
type Planned = { readonly seed: number; readonly rate: number; readonly durationMs: number };

/** Every request of the load in the order of its time: the same for the same seed. */
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
    // as many requests again, all of one organization, and of one end user with a small quota
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

/** Returns a disconnect: at once, before or at the first byte, in mid-stream, or at any time. */
function leaveOf(random: () => number): Leave {
  const [kind, how] = [random(), random()];
  if (kind < 0.15) return { afterMs: 0 };
  if (kind < 0.45) return { afterMs: how * 40 };
  if (kind < 0.6) return { afterBytes: 1 };
  return kind < 0.85 ? { afterBytes: Math.ceil(how * 6000) } : { afterMs: how * 1500 };
}

/** One of them, each as likely as its weight. */
function pick<T>(all: readonly T[], weightOf: (one: T) => number, at: number): T {
  let left = at * all.reduce((sum, one) => sum + weightOf(one), 0);
  const found = all.find((one) => (left -= weightOf(one)) < 0) ?? all.at(-1);
  if (found === undefined) throw new Error("nothing to pick from");
  return found;
}

/** A fault to come; `mode` is how, where there are several ways, and `some` from 0 to 1 chooses among what there is. */
export type PlannedFault = {
  readonly what: keyof typeof FAULTS;
  readonly atMs: number;
  readonly region: PairName;
  readonly some: number;
  readonly mode: string | null;
  readonly forMs: number;
};

/**
 * The frequency of each fault in a long run (shorter ones have at least two of each), the share of the run
 * until which it comes (memory is judged after the last restart), its variants in turn, and its length.
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

/** Every fault of the run, in the order of its time; regions in turn. */
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
