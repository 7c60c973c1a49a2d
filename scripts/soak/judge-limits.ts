import type { PairName } from "../region-names.ts";
import { quantile } from "../quantile.ts";
import { unlessTooSlow } from "./judge-answers.ts";
import type { Load } from "./judge-answers.ts";
import { nameOf, seconds } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";

const WINDOW_MS = 60_000;
/** Of one machine's clock, read in two processes. */
const CLOCK_SLACK_MS = 20;
const MIB = 1024 * 1024;
const UNPROVEN = "no life long enough to judge";
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

/** When a key's DELETE was first sent, and when one was answered with 200; Unix ms, null while none was. */
export type Revocation = { readonly deletingMs: number; readonly deletedMs: number | null };
export type Revocations = ReadonlyMap<string, Revocation>;

/** What a register has stored of a key in a region. */
export type RegisterLog = {
  readonly keyId: string;
  readonly region: PairName;
  readonly limit: number;
  /** Unix ms, oldest first; the last 1000 at most. */
  readonly admissions: readonly number[];
};
/** What a wallet has stored of its organisation's requests. Unix ms. */
export type GrantLog = {
  readonly orgId: string;
  /** Of the organisation itself; null: none. */
  readonly limit: number | null;
  readonly granted: readonly number[];
  /** Those whose hold nobody resolved before its time was up: when granted, and the region that ran it. */
  readonly expired: readonly { readonly grantedMs: number; readonly ranIn: PairName }[];
};

/** What a region is at rest: with its load gone, nothing is left to do, and nothing was left behind. */
export type Residue = {
  readonly region: PairName;
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
  readonly region: PairName;
  /** The process that was measured: another one after each restart. */
  readonly pid: number;
  readonly atMs: number;
  readonly bytes: number;
};

/** A key is dead everywhere from the answer to its DELETE: what is sent later is 401, or our own 503. */
export function judgeRevocations(traces: readonly Trace[], revocations: Revocations): Verdict {
  let later = 0;
  let refused = 0;
  const broken: string[] = [];
  for (const trace of traces) {
    const { deletedMs = null } = revocations.get(trace.keyId ?? "") ?? {};
    if (deletedMs === null || trace.sentMs <= deletedMs) continue;
    later++;
    if (trace.status === 401) refused++;
    if (trace.status === null || trace.status === 401 || trace.status === 503) continue;
    const afterMs = (trace.sentMs - deletedMs).toFixed(0);
    broken.push(`${nameOf(trace)}: ${trace.status}, sent ${afterMs} ms after DELETE was answered`);
  }
  const dead = [...revocations.values()].filter(({ deletedMs }) => deletedMs !== null).length;
  return {
    promise: "no key admitted after its revocation",
    figure: `${dead} keys revoked, ${later} requests after that, ${refused} of them 401`,
    broken,
  };
}

/**
 * Never more than the limit in any 60 s, by what registers and wallets have stored and, on its own, by what
 * clients saw: so many admitted requests of which all were sent and answered within less than 60 s.
 */
export function judgeLimits(
  traces: readonly Trace[],
  logs: readonly RegisterLog[],
  grants: readonly GrantLog[],
): Verdict {
  const broken: string[] = [];
  let fullest = 0;
  const seen = Map.groupBy(
    traces.filter(({ isAdmitted }) => isAdmitted),
    ({ keyId, region }) => `${keyId} ${region}`,
  );
  for (const { keyId, region, limit, admissions } of logs) {
    const name = `key ${keyId} in ${region}`;
    const stored = mostWithin(admissions.map((at) => ({ fromMs: at, untilMs: at })));
    const proven = mostWithin(
      (seen.get(`${keyId} ${region}`) ?? []).map(({ sentMs, answeredMs, endedMs }) => ({
        fromMs: sentMs,
        untilMs: (answeredMs ?? endedMs) + CLOCK_SLACK_MS,
      })),
    );
    fullest = Math.max(fullest, stored / limit, proven / limit);
    if (stored > limit) broken.push(`${name}: ${stored} stored in 60 s, limit ${limit}`);
    if (proven > limit) broken.push(`${name}: ${proven} seen admitted in 60 s, limit ${limit}`);
  }
  const limited = grants.flatMap(({ limit, ...grant }) =>
    limit === null ? [] : [{ ...grant, limit }],
  );
  for (const { orgId, limit, granted } of limited) {
    const most = mostWithin(granted.map((at) => ({ fromMs: at, untilMs: at })));
    fullest = Math.max(fullest, most / limit);
    if (most > limit) broken.push(`${orgId}: ${most} granted in 60 s, its limit is ${limit}`);
  }
  broken.push(...refusedTooEarly(traces, logs));
  return {
    promise: "no limit passed in any 60 s",
    figure: `fullest ${fullest.toFixed(3)} of its limit, ${logs.length} registers, ${limited.length} organisations`,
    broken,
  };
}

type Span = { readonly fromMs: number; readonly untilMs: number };

/** The most spans that lie whole within some window shorter than 60 s. */
export function mostWithin(spans: readonly Span[]): number {
  const byStart = spans.toSorted((a, b) => b.fromMs - a.fromMs);
  // Windows begin at a span's start, the latest first: the spans that began since then are counted.
  let most = 0;
  const within: number[] = [];
  for (const { fromMs, untilMs } of byStart) {
    insert(within, untilMs);
    most = Math.max(most, countBelow(within, fromMs + WINDOW_MS));
  }
  return most;
}

/** A 429 of the key's is true: the limit was used up by what had been stored in the 60 s before. */
function refusedTooEarly(traces: readonly Trace[], logs: readonly RegisterLog[]): string[] {
  const byRegister = new Map(logs.map((log) => [`${log.keyId} ${log.region}`, log]));
  return traces.flatMap((trace) => {
    if (trace.status !== 429 || trace.type !== "rate_limit_exceeded") return [];
    const log = byRegister.get(`${trace.keyId} ${trace.region}`);
    const isWhole = log !== undefined && log.admissions.length < 1000;
    if (!isWhole || trace.isOrganizationLimit) return [];
    const sinceMs = trace.sentMs - WINDOW_MS - CLOCK_SLACK_MS;
    const untilMs = trace.endedMs + CLOCK_SLACK_MS;
    const count = log.admissions.filter((at) => at >= sinceMs && at <= untilMs).length;
    if (count >= log.limit) return [];
    return [`${nameOf(trace)}: 429 with ${count} of ${log.limit} used`];
  });
}

function insert(sorted: number[], value: number): void {
  sorted.splice(countBelow(sorted, value), 0, value);
}

function countBelow(sorted: readonly number[], bound: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? Infinity) < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** As many requests of one organisation in one region as it may have in flight there, sent at once at rest. */
export type Crowd = readonly Trace[];

/** A place in flight that a request never gave back would be missing now: each of a full crowd must be answered. */
export function judgePlaces(crowds: readonly Crowd[], inFlightMax: number): Verdict {
  const broken = crowds.length === 0 ? ["nothing proven: nobody came"] : [];
  for (const crowd of crowds) {
    const [one] = crowd;
    const place = `${one?.orgId} in ${one?.region}`;
    const refused = crowd.filter(({ status, fate }) => status !== 200 || fate !== "whole");
    broken.push(
      ...refused.map(
        (trace) => `${nameOf(trace)}: ${trace.status} ${trace.code ?? trace.fate}, at rest`,
      ),
    );
    const together = togetherIn(crowd);
    if (refused.length === 0 && together < inFlightMax) {
      broken.push(`nothing proven: ${place} had ${together} of ${inFlightMax} in flight at once`);
    }
  }
  const sent = crowds.reduce((sum, crowd) => sum + crowd.length, 0);
  return {
    promise: "no place in flight is lost",
    figure: `${sent} requests in ${crowds.length} crowds of ${inFlightMax} at once, at rest`,
    broken,
  };
}

/** How many were surely being worked on at one moment: answered with headers, not yet ended. */
function togetherIn(crowd: Crowd): number {
  const firstEnd = Math.min(...crowd.map(({ endedMs }) => endedMs));
  return crowd.filter(({ answeredMs }) => answeredMs !== null && answeredMs < firstEnd).length;
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
 * that of its second, when it had warmed up. Growth counts on any machine; that there is too little to judge by, on
 * one that bears its load.
 */
export function judgeMemory(samples: readonly MemorySample[], load: Load): Verdict {
  const figures: string[] = [];
  const broken: string[] = [];
  let isGrown = false;
  for (const region of ["eu", "us"] as const) {
    for (const what of ["heap", "process"] as const) {
      const some = samples.filter((sample) => sample.region === region && sample.what === what);
      const { figure, fault } = growthOf(what, longestLife(some));
      isGrown ||= fault !== null && fault !== UNPROVEN;
      if (figure !== null) figures.push(`${region} ${what} ${figure}`);
      if (fault !== null) broken.push(`${region} ${what}: ${fault}`);
    }
  }
  const verdict = { promise: "memory flat", figure: figures.join(", "), broken };
  return isGrown ? verdict : unlessTooSlow(verdict, load);
}

type Growth = { readonly figure: string | null; readonly fault: string | null };

function growthOf(what: MemorySample["what"], life: readonly MemorySample[]): Growth {
  const quarters = quartersOf(life);
  if (quarters === null && what === "heap") {
    return { figure: "not known", fault: null }; // V8 writes it in blocks, which a short life may not fill
  }
  if (quarters === null) return { figure: null, fault: UNPROVEN };
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
  return [quantile(second, 0.5), quantile(last, 0.5)];
}

function lengthOf(life: readonly MemorySample[]): number {
  return (life.at(-1)?.atMs ?? 0) - (life[0]?.atMs ?? 0);
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
