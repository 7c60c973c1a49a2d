import { seeded } from "../seeded.ts";
import type { RegionName } from "../region-names.ts";
import { FORGED, PAID, PLAIN, READS, WRONG } from "./shapes.ts";
import type { Shape } from "./shapes.ts";

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

export type PlannedFault = { readonly atMs: number; readonly region: RegionName } & (
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
  { turn, ...place }: { atMs: number; region: RegionName; turn: number },
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
