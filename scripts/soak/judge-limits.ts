import type { PairName } from "../region-names.ts";
import { quantile } from "../quantile.ts";
import { unlessTooSlow } from "./judge-answers.ts";
import type { Load } from "./judge-answers.ts";
import { nameOf, seconds, sumOf } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";

const WINDOW_MS = 60_000;
/** Of one machine's clock, read in two processes. */
const CLOCK_SLACK_MS = 20;
/** What a register keeps of a key: beyond it, what is stored is not all. */
const ADMISSIONS_KEPT = 1000;
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
  const seen = Map.groupBy(
    traces.filter(({ isAdmitted }) => isAdmitted),
    ({ keyId, region }) => `${keyId} ${region}`,
  );
  const spansOf = ({ keyId, region }: RegisterLog): Span[] =>
    (seen.get(`${keyId} ${region}`) ?? []).map(({ sentMs, answeredMs, endedMs }) => {
      return { fromMs: sentMs, untilMs: (answeredMs ?? endedMs) + CLOCK_SLACK_MS };
    });
  const limited = grants.filter(({ limit }) => limit !== null);
  const counts = [
    ...logs.flatMap((log) => {
      const one = { whose: `key ${log.keyId} in ${log.region}`, limit: log.limit };
      return [
        { ...one, what: "stored", most: mostWithin(log.admissions.map(moment)) },
        { ...one, what: "seen admitted", most: mostWithin(spansOf(log)) },
      ];
    }),
    ...limited.map(({ orgId, limit, granted }) => {
      const most = mostWithin(granted.map(moment));
      return { whose: orgId, limit: limit ?? 0, what: "granted", most };
    }),
  ];
  const broken = counts
    .filter(({ most, limit }) => most > limit)
    .map(({ whose, most, what, limit }) => `${whose}: ${most} ${what} in 60 s, limit ${limit}`);
  const fullest = Math.max(0, ...counts.map(({ most, limit }) => most / limit));
  return {
    promise: "no limit passed in any 60 s",
    figure: `fullest ${fullest.toFixed(3)} of its limit, ${logs.length} registers, ${limited.length} organisations`,
    broken: [...broken, ...refusedTooEarly(traces, logs)],
  };
}

type Span = { readonly fromMs: number; readonly untilMs: number };

function moment(at: number): Span {
  return { fromMs: at, untilMs: at };
}

/** The most spans that lie whole within some window shorter than 60 s. */
export function mostWithin(spans: readonly Span[]): number {
  const ends = spans.map(({ untilMs }) => untilMs).toSorted((a, b) => a - b);
  // Windows begin at a span's start: of those that end within one, the ones that began before it are not in it.
  let [most, ended] = [0, 0];
  let lasting: number[] = []; // ends of those that began before and last beyond the window
  for (const [begun, { fromMs, untilMs }] of spans
    .toSorted((a, b) => a.fromMs - b.fromMs)
    .entries()) {
    const endMs = fromMs + WINDOW_MS;
    while ((ends[ended] ?? Infinity) < endMs) ended++;
    lasting = lasting.filter((until) => until >= endMs);
    most = Math.max(most, ended - (begun - lasting.length));
    lasting.push(untilMs);
  }
  return most;
}

/** A 429 of the key's is true: the limit was used up by what had been stored in the 60 s before. */
function refusedTooEarly(traces: readonly Trace[], logs: readonly RegisterLog[]): string[] {
  const byRegister = new Map(logs.map((log) => [`${log.keyId} ${log.region}`, log]));
  return traces.flatMap((trace) => {
    const isKeys = trace.type === "rate_limit_exceeded" && !trace.isOrganizationLimit;
    const log = byRegister.get(`${trace.keyId} ${trace.region}`);
    if (trace.status !== 429 || !isKeys || log === undefined) return [];
    const sinceMs = trace.sentMs - WINDOW_MS - CLOCK_SLACK_MS;
    const untilMs = trace.endedMs + CLOCK_SLACK_MS;
    const count = log.admissions.filter((at) => at >= sinceMs && at <= untilMs).length;
    if (log.admissions.length >= ADMISSIONS_KEPT || count >= log.limit) return [];
    return [`${nameOf(trace)}: 429 with ${count} of ${log.limit} used`];
  });
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
  const sent = sumOf(crowds, ({ length }) => length);
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
  const sum = (of: "alarms" | "registers" | "keys"): number => sumOf(residues, (one) => one[of]);
  return {
    promise: "no growth: alarms rest, forged keys leave nothing",
    figure: `${sum("alarms")} alarms at rest, ${sum("registers")} registers, ${sum("keys")} keys known`,
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
  const places = ["eu", "us"].flatMap((region) => [`${region} heap`, `${region} process`]);
  for (const place of places) {
    const life = longestLife(samples.filter((one) => `${one.region} ${one.what}` === place));
    const isHeap = place.endsWith("heap");
    const [early, late] = [quarterOf(life, 0.25), quarterOf(life, 0.75)];
    if (Number.isNaN(early + late)) {
      // V8 writes the heap in blocks, which a short life may not fill
      if (isHeap) figures.push(`${place} not known`);
      else broken.push(`${place}: no life long enough to judge`);
      continue;
    }
    const { bytes, share } = GROWTH_MAX[isHeap ? "heap" : "process"];
    figures.push(`${place} ${mib(early)} -> ${mib(late)} in ${seconds(lengthOf(life))}`);
    if (late - early <= Math.max(bytes, early * share)) continue;
    isGrown = true;
    broken.push(`${place}: grew from ${mib(early)} to ${mib(late)}`);
  }
  const verdict = { promise: "memory flat", figure: figures.join(", "), broken };
  return isGrown ? verdict : unlessTooSlow(verdict, load);
}

function longestLife(samples: readonly MemorySample[]): readonly MemorySample[] {
  const lives = [...Map.groupBy(samples, ({ pid }) => pid).values()];
  return lives.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0] ?? [];
}

/** The median of a quarter of a life, in bytes; NaN where too little of it was measured. */
function quarterOf(life: readonly MemorySample[], from: number): number {
  const [begin, length] = [life[0]?.atMs ?? 0, lengthOf(life)];
  const some = life.filter(
    ({ atMs }) => atMs >= begin + from * length && atMs <= begin + (from + 0.25) * length,
  );
  if (some.length < SAMPLES_LEAST) return NaN;
  return quantile(
    some.map(({ bytes }) => bytes),
    0.5,
  );
}

function lengthOf(life: readonly MemorySample[]): number {
  return (life.at(-1)?.atMs ?? 0) - (life[0]?.atMs ?? 0);
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
