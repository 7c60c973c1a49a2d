import { seeded } from "../seeded.ts";
import type { PairName } from "../region-names.ts";
import type { Forced, Kind } from "./trace.ts";

/** A way to ask; `body` null is a GET. */
export type Shape = {
  readonly name: string;
  readonly kind: Kind;
  readonly path: string;
  readonly forced: Forced;
  /** How often it is drawn among the shapes of its load. */
  readonly weight: number;
  readonly body: ((words: string, user: string | null) => object) | null;
};

const CAP = 120;

function chat(name: string, weight: number, of: Partial<Shape> & { more?: object } = {}): Shape {
  const { more = {}, ...rest } = of;
  const isStream = "stream" in more;
  const body: Shape["body"] = (words, user) => {
    const messages = [{ role: "user", content: words }];
    return { model: name, messages, max_tokens: CAP, ...(user === null ? {} : { user }), ...more };
  };
  return {
    name: `${name}${isStream ? " stream" : ""}`,
    kind: isStream ? "stream" : "json",
    path: "/chat/completions",
    forced: "nothing",
    weight,
    body,
    ...rest,
  };
}

function embeddings(model: string, weight: number): Shape {
  return {
    name: model,
    kind: "embeddings",
    path: "/embeddings",
    forced: "nothing",
    weight,
    body: (words, user) => ({ model, input: [words, "b"], ...(user === null ? {} : { user }) }),
  };
}

function read(path: string, weight: number): Shape {
  return { name: `GET ${path}`, kind: "read", path, forced: "nothing", weight, body: null };
}

const STREAM = { stream: true };
const TOLD = { stream: true, stream_options: { include_usage: true } };

/** Takes seconds, so that many of it are in flight together. */
export const LINGERING: Shape = chat("sandbox/slow-stream", 1, {
  more: { ...TOLD, max_tokens: 20 },
});

/** What customers ask for and pay. */
const PAID: readonly Shape[] = [
  chat("sandbox/echo", 24),
  chat("sandbox/echo", 14, { more: TOLD }),
  chat("sandbox/echo", 5, { more: STREAM, name: "sandbox/echo stream untold" }),
  chat("sandbox/split-utf8", 3, { more: TOLD }),
  chat("sandbox/no-usage", 3, { more: TOLD }),
  LINGERING,
  chat("sandbox/cut", 1, { more: TOLD, forced: "break" }),
  embeddings("sandbox/embed", 9),
  chat("mock/chat", 12),
  chat("mock/chat", 14, { more: TOLD }),
  embeddings("mock/embed", 4),
  chat("mock/flaky", 3),
  chat("mock/flaky", 2, { more: TOLD }),
  chat("mock/broken", 3, { forced: "failure" }),
  chat("mock/cutting", 1, { more: TOLD, forced: "break" }),
  chat("mock/busy", 1, { forced: "overload" }),
];

/** Small and alike: for storms, in which what is refused matters. */
export const PLAIN: readonly [Shape, ...Shape[]] = [
  chat("sandbox/echo", 6),
  chat("sandbox/echo", 2, { more: TOLD }),
  embeddings("sandbox/embed", 2),
];

/** What costs nothing. */
const READS: readonly Shape[] = [read("/balance", 3), read("/models", 2), read("/users", 1)];

/** Refused whoever asks. */
const WRONG: readonly Shape[] = [
  chat("sandbox/nobody", 1, { kind: "wrong", name: "unknown model" }),
  chat("sandbox/echo", 1, { kind: "wrong", name: "wrong field", more: { temperature: 3 } }),
  chat("sandbox/echo", 1, { kind: "wrong", name: "wrong region" }),
];

/** With keys that are none: refused before anything is asked. */
const FORGED: readonly Shape[] = [
  chat("sandbox/echo", 3, { kind: "forged", name: "forged JSON" }),
  chat("sandbox/echo", 1, { kind: "forged", name: "forged stream", more: TOLD }),
];

const WORDS =
  "the sky over the bay is blue because small things scatter light of short waves".split(" ");

/** A prompt of 1 to 60 words: below the size at which a hold is estimated and no longer bounded. */
export function wordsOf(random: number): string {
  const count = 1 + Math.floor(random * 60);
  return Array.from({ length: count }, (_, i) => WORDS[(i * 7 + count) % WORDS.length]).join(" ");
}

/** Who sends: the hot organisation, any other, those with end users, those that run dry, keys of few requests, forgers. */
export type Sender = "hot" | "any" | "users" | "dry" | "small" | "forger";

/** When a client leaves: so long after it sent, or once so many bytes of the answer came. */
export type Leave = { readonly afterMs: number } | { readonly afterBytes: number };

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
/** In a run that is long enough for it: a shorter one has five. */
const STORM_EVERY_MS = 9000;
/** The share of that time that a storm lasts. */
const STORM_SHARE = 1 / 6;

/** Senders and their share of the load, and what they send. */
const LOADS: readonly (readonly [sender: Sender, share: number, shapes: readonly Shape[]])[] = [
  ["hot", 22, PAID],
  ["any", 36, PAID],
  ["users", 10, PLAIN],
  ["dry", 7, PLAIN],
  ["small", 8, PLAIN],
  ["forger", 8, FORGED],
  ["any", 6, READS],
  ["any", 3, WRONG],
];
/** Whose storms come, in turn. */
const STORMS: readonly Sender[] = ["forger", "dry", "small", "users"];

/** A request beside the plan, sent with whatever key it is given. */
export function unplanned(shape: Shape, isSlow = false): Arrival {
  const choices = { which: 0, key: 0, words: 0.1, user: 0 };
  return { atMs: 0, sender: "any", shape, ...choices, leave: null, isSlow };
}

/** Every request of the load in the order of its time: the same for the same seed. */
export function* arrivals(options: {
  readonly seed: number;
  readonly rate: number;
  readonly durationMs: number;
}): Generator<Arrival> {
  const { seed, rate, durationMs } = options;
  const random = seeded(seed);
  const gapMs = 1000 / rate;
  const everyMs = Math.min(STORM_EVERY_MS, durationMs / 5);
  let storm = 0;
  for (let at = 0; at < durationMs; at += gapMs) {
    const phase = at % everyMs;
    const isStorm = phase >= everyMs * (1 - STORM_SHARE);
    const load = pick(LOADS, random());
    yield arrival(at + random() * gapMs, load, random);
    if (phase < gapMs) storm++;
    const sender = STORMS[storm % STORMS.length];
    const stormy = LOADS.find(([one]) => one === sender);
    if (isStorm && stormy !== undefined) {
      yield Object.assign(arrival(at + gapMs, stormy, random), aimOf(storm));
    }
  }
}

/** A storm is as many requests again, all of one organisation, and of one end user with a small quota. */
function aimOf(storm: number): Pick<Arrival, "which" | "user"> {
  const round = Math.floor(storm / STORMS.length);
  return { which: (round % 5) / 5, user: (3 + (round % 2) + 0.5) / 6 };
}

function arrival(
  atMs: number,
  [sender, , shapes]: (typeof LOADS)[number],
  random: () => number,
): Arrival {
  const shape = pick(
    shapes.map((one) => [one, one.weight] as const),
    random(),
  )[0];
  const mayLeave = shape.kind !== "read" && shape.kind !== "forged" && shape.kind !== "wrong";
  return {
    atMs,
    sender,
    shape,
    which: random(),
    key: random(),
    words: random(),
    user: random(),
    leave: random() < LEAVE_SHARE && mayLeave ? leaveOf(random) : null,
    isSlow: random() < SLOW_SHARE && shape.kind === "stream",
  };
}

/** At once, before the first byte, at it, in mid-stream, or at any moment. */
function leaveOf(random: () => number): Leave {
  const kind = random();
  const how = random();
  if (kind < 0.15) return { afterMs: 0 };
  if (kind < 0.45) return { afterMs: how * 40 };
  if (kind < 0.6) return { afterBytes: 1 };
  if (kind < 0.85) return { afterBytes: Math.ceil(how * 6000) };
  return { afterMs: how * 1500 };
}

/** One of them, each as likely as its weight, which is its second part. */
function pick<T extends readonly [unknown, number, ...unknown[]]>(
  all: readonly T[],
  at: number,
): T {
  const total = all.reduce((sum, [, weight]) => sum + weight, 0);
  let left = at * total;
  const found = all.find(([, weight]) => (left -= weight) < 0) ?? all.at(-1);
  if (found === undefined) throw new Error("nothing to pick from");
  return found;
}

export type PlannedFault = { readonly atMs: number; readonly region: PairName } & (
  | { readonly what: "abort"; readonly share: { readonly from: number; readonly each: number } }
  | { readonly what: "book"; readonly mode: "refuse" | "lose" | "hang"; readonly forMs: number }
  | { readonly what: "link"; readonly fault: LinkFault; readonly forMs: number }
  | { readonly what: "kill" }
  | { readonly what: "cron" }
  | { readonly what: "revoke"; readonly scope: "regional" | "global"; readonly which: number }
);
const LINK_FAULTS = ["refuse", "drop", "lose-reply", "reset-after", "duplicate"] as const;
export type LinkFault = (typeof LINK_FAULTS)[number];

/** How often each fault comes, in a run that is long enough for it; shorter runs have at least two of each. */
const EVERY_MS = {
  abort: 4000,
  book: 17_000,
  link: 13_000,
  kill: 13_000,
  cron: 31_000,
  revoke: 1700,
} as const;
type What = keyof typeof EVERY_MS;
/** The share of the run in which it comes: memory is judged on the life after the last restart. */
const UNTIL: Partial<Record<What, number>> = { kill: 0.5, link: 0.93, book: 0.93 };

/** Every fault of the run, in the order of its time; regions in turn. */
export function faultPlan(seed: number, durationMs: number): readonly PlannedFault[] {
  const random = seeded(seed + 1);
  const plan = (Object.keys(EVERY_MS) as What[]).flatMap((what) => {
    const untilMs = durationMs * (UNTIL[what] ?? 0.97);
    const everyMs = Math.min(EVERY_MS[what], untilMs / 2.5);
    const count = Math.floor(untilMs / everyMs);
    return Array.from({ length: count }, (_, i) => {
      const atMs = Math.round((i + 0.6 + random() * 0.4) * everyMs);
      return faultOf(what, { atMs, region: i % 2 === 0 ? "eu" : "us", turn: i }, random);
    });
  });
  return plan.toSorted((a, b) => a.atMs - b.atMs);
}

function faultOf(
  what: What,
  { turn, ...place }: { atMs: number; region: PairName; turn: number },
  random: () => number,
): PlannedFault {
  const some = random();
  switch (what) {
    case "abort":
      return { ...place, what, share: { from: Math.floor(some * 3), each: 3 } };
    case "book": {
      const mode = (["refuse", "lose", "hang"] as const)[turn % 3] ?? "refuse";
      return { ...place, what, mode, forMs: 2000 + some * 4000 };
    }
    case "link": {
      const fault = LINK_FAULTS[turn % LINK_FAULTS.length] ?? "refuse";
      return { ...place, what, fault, forMs: 1500 + some * 4000 };
    }
    case "revoke":
      return { ...place, what, scope: some < 0.7 ? "global" : "regional", which: random() };
    case "kill":
    case "cron":
      return { ...place, what };
  }
}
