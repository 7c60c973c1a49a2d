import type { RegionName } from "../region-names.ts";
import { unlessTooSlow } from "./judge-answers.ts";
import type { Load } from "./judge-answers.ts";
import type { GrantLog } from "./judge-keys.ts";
import type { Estate } from "./judge-money.ts";
import type { Restart, Verdict } from "./trace.ts";

const MIB = 1024 * 1024;
/** Least samples of a quarter of a life. */
const SAMPLES_LEAST = 2;
/**
 * Growth from the second to the last quarter of a life. A heap after a collection is what is still in use: it
 * grows with what is stored for a minute, no further. A process has the caches of every object's database
 * too, which grow with what they hold, and what the runtime has not given back: only doubling is a leak.
 */
const GROWTH_MAX = {
  heap: { share: 0.25, bytes: 4 * MIB },
  process: { share: 1, bytes: 96 * MIB },
} as const;

/** The slowest request under load, by its client or its upstream, is over sooner: a kill takes no older one. */
const RUN_USUAL_MS = 10_000;

/** An outbox at rest. */
export type OutboxDepth = {
  readonly region: RegionName;
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
};
/** What stood open at some moment of the run; ages in ms. */
export type Depth = {
  readonly atMs: number;
  readonly openHolds: number;
  readonly oldestHoldMs: number;
  readonly waiting: number;
  readonly oldestMessageMs: number;
};
/** What a region is at rest: with its load gone, nothing is left to do, and nothing was left behind. */
export type Residue = {
  readonly region: RegionName;
  /** Alarms of wallets and outboxes that went off in the last seconds, and how many of these objects there are. */
  readonly alarms: number;
  readonly objects: number;
  /** Registers that have storage, and keys that were ever made. */
  readonly registers: number;
  readonly keys: number;
};
export type MemorySample = {
  /** The gateway's own heap after a collection, or all of the process that runs it. */
  readonly what: "heap" | "process";
  readonly region: RegionName;
  /** The process that was measured: another one after each restart. */
  readonly pid: number;
  readonly atMs: number;
  readonly bytes: number;
};

/**
 * Every run resolves its own hold: one expires only where the region that ran its request was killed while
 * it ran. A machine too slow for its load runs requests for longer than that, and late: not judged there.
 */
export function judgeExpiries(
  grants: readonly GrantLog[],
  restarts: readonly Restart[],
  load: Load,
): Verdict {
  const spans = restarts.map((one) => ({ ...one, fromMs: one.fromMs - RUN_USUAL_MS }));
  const expired = grants.flatMap(({ orgId, expired: some }) =>
    some.map((one) => ({ orgId, ...one })),
  );
  const share = (region: RegionName): string => {
    const mine = spans.filter((span) => span.region === region);
    return `${((100 * lengthWithin(mine, load)) / (load.untilMs - load.fromMs)).toFixed(0)} % of ${region}`;
  };
  const verdict = {
    promise: "holds expire only where a region was killed",
    figure: `${expired.length} expired, ${restarts.length} restarts, which excuse ${share("eu")}'s and ${share("us")}'s run`,
    broken: expired
      .filter(
        ({ grantedMs, ranIn }) =>
          !spans.some(
            ({ region, fromMs, untilMs }) =>
              region === ranIn && grantedMs >= fromMs && grantedMs <= untilMs,
          ),
      )
      .map(({ orgId, grantedMs, ranIn }) => {
        const at = new Date(grantedMs).toISOString();
        return `${orgId}: a hold of ${at} expired, whose request ran in ${ranIn}, which was not killed then`;
      }),
  };
  return unlessTooSlow(verdict, load);
}

/** How much of a time is within any of the spans, in ms. */
function lengthWithin(
  spans: readonly Pick<Restart, "fromMs" | "untilMs">[],
  within: { readonly fromMs: number; readonly untilMs: number },
): number {
  let [length, coveredMs] = [0, within.fromMs];
  for (const { fromMs, untilMs } of spans.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const endMs = Math.min(untilMs, within.untilMs);
    length += Math.max(0, endMs - Math.max(fromMs, coveredMs));
    coveredMs = Math.max(coveredMs, endMs);
  }
  return length;
}

/** Every hold ended and every message arrived; none was older than the longest that a hold may live. */
export function judgeRest(
  estates: readonly Estate[],
  outboxes: readonly OutboxDepth[],
  { depths, holdMaxMs }: { readonly depths: readonly Depth[]; readonly holdMaxMs: number },
): Verdict {
  const broken = estates
    .filter(({ openHolds, held }) => openHolds !== 0 || held !== 0)
    .map(({ orgId, openHolds, held }) => `${orgId}: ${openHolds} holds of ${held} micros open`);
  for (const { region, waiting, dead, parked } of outboxes) {
    if (waiting + dead + parked === 0) continue;
    broken.push(`${region}: ${waiting} messages wait, ${dead} dead, ${parked} parked`);
  }
  const oldest = Math.max(0, ...depths.map(({ oldestHoldMs }) => oldestHoldMs));
  if (oldest > holdMaxMs) broken.push(`a hold was open for ${oldest} ms, at most ${holdMaxMs}`);
  const most = Math.max(0, ...depths.map(({ openHolds }) => openHolds));
  const queued = Math.max(0, ...depths.map(({ waiting }) => waiting));
  const message = Math.max(0, ...depths.map(({ oldestMessageMs }) => oldestMessageMs));
  return {
    promise: "no open hold, nothing in an outbox",
    figure: `under load at most ${most} holds (oldest ${seconds(oldest)}), ${queued} messages (oldest ${seconds(message)})`,
    broken,
  };
}

/** At rest no alarm spins, and only keys that were made have a register. */
export function judgeResidue(residues: readonly Residue[]): Verdict {
  const broken = residues.flatMap(({ region, alarms, objects, registers, keys }) => [
    ...(alarms > objects ? [`${region}: ${alarms} alarms of ${objects} objects at rest`] : []),
    ...(registers > keys ? [`${region}: ${registers} registers of ${keys} keys`] : []),
  ]);
  const sum = (of: (one: Residue) => number): number =>
    residues.reduce((all, one) => all + of(one), 0);
  return {
    promise: "no growth: alarms rest, forged keys leave nothing",
    figure: `${sum((one) => one.alarms)} alarms at rest, ${sum((one) => one.registers)} registers, ${sum((one) => one.keys)} keys known`,
    broken,
  };
}

/**
 * Memory of each region's longest life, a restart begins another: the median of its last quarter against
 * that of its second, when it had warmed up.
 */
export function judgeMemory(samples: readonly MemorySample[]): Verdict {
  const figures: string[] = [];
  const broken: string[] = [];
  for (const region of ["eu", "us"] as const) {
    for (const what of ["heap", "process"] as const) {
      const some = samples.filter((sample) => sample.region === region && sample.what === what);
      const { figure, fault } = growthOf(what, longestLife(some));
      if (figure !== null) figures.push(`${region} ${what} ${figure}`);
      if (fault !== null) broken.push(`${region} ${what}: ${fault}`);
    }
  }
  return { promise: "memory flat", figure: figures.join(", "), broken };
}

type Growth = { readonly figure: string | null; readonly fault: string | null };

function growthOf(what: MemorySample["what"], life: readonly MemorySample[]): Growth {
  const quarters = quartersOf(life);
  if (quarters === null && what === "heap") {
    return { figure: "not known", fault: null }; // V8 writes it in blocks, which a short life may not fill
  }
  if (quarters === null) return { figure: null, fault: "no life long enough to judge" };
  const [early, late] = quarters;
  const { bytes, share } = GROWTH_MAX[what];
  const isGrown = late - early > Math.max(bytes, early * share);
  return {
    figure: `${mib(early)} -> ${mib(late)} in ${seconds(lengthOf(life))}`,
    fault: isGrown ? `grew from ${mib(early)} to ${mib(late)}` : null,
  };
}

function longestLife(samples: readonly MemorySample[]): readonly MemorySample[] {
  const lives = [...Map.groupBy(samples, ({ pid }) => pid).values()];
  return lives.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0] ?? [];
}

function quartersOf(life: readonly MemorySample[]): [number, number] | null {
  const begin = life[0]?.atMs ?? 0;
  const length = lengthOf(life);
  const within = (from: number, to: number): number[] =>
    life
      .filter(({ atMs }) => atMs >= begin + from * length && atMs <= begin + to * length)
      .map(({ bytes }) => bytes);
  const [second, last] = [within(0.25, 0.5), within(0.75, 1)];
  if (Math.min(second.length, last.length) < SAMPLES_LEAST) return null;
  return [medianOf(second), medianOf(last)];
}

function lengthOf(life: readonly MemorySample[]): number {
  return (life.at(-1)?.atMs ?? 0) - (life[0]?.atMs ?? 0);
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
