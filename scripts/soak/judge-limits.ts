import type { PairName } from "../region-names.ts";
import { quantile } from "../quantile.ts";
import { nameOf, seconds } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";

const WINDOW_MS = 60_000;
/** Of one machine's clock, read in two processes. */
const CLOCK_SLACK_MS = 20;
/** What a register keeps of a key: beyond it, what is stored is not all. */
const ADMISSIONS_KEPT = 1000;
const MIB = 1024 * 1024;
/** Least samples of a quarter of a life. */
const SAMPLES_LEAST = 2;
/** What a heap may grow by: with what is stored for a minute, no further. */
const GROWTH_BYTES_MAX = 4 * MIB;
const GROWTH_SHARE_MAX = 0.25;

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
};

/** The gateway's own heap after a collection. */
export type HeapSample = {
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

/**
 * What a region's isolate still uses after a collection, in its longest life (a restart begins another): the median
 * of the last quarter against that of the second, when it had warmed up.
 */
export function judgeMemory(samples: readonly HeapSample[]): Verdict {
  const figures: string[] = [];
  const broken: string[] = [];
  for (const region of ["eu", "us"]) {
    const life = longestLife(samples.filter((one) => one.region === region));
    const [early, late] = [quarterOf(life, 0.25), quarterOf(life, 0.75)];
    // V8 writes the heap in blocks, which a short life may not fill
    if (Number.isNaN(early + late)) figures.push(`${region} not known`);
    else figures.push(`${region} ${mib(early)} -> ${mib(late)} in ${seconds(lengthOf(life))}`);
    if (!(late - early > Math.max(GROWTH_BYTES_MAX, early * GROWTH_SHARE_MAX))) continue;
    broken.push(`${region}: grew from ${mib(early)} to ${mib(late)}`);
  }
  return { promise: "memory flat", figure: figures.join(", "), broken };
}

function longestLife(samples: readonly HeapSample[]): readonly HeapSample[] {
  const lives = [...Map.groupBy(samples, ({ pid }) => pid).values()];
  return lives.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0] ?? [];
}

/** The median of a quarter of a life, in bytes; NaN where too little of it was measured. */
function quarterOf(life: readonly HeapSample[], from: number): number {
  const [begin, length] = [life[0]?.atMs ?? 0, lengthOf(life)];
  const some = life
    .filter(({ atMs }) => atMs >= begin + from * length && atMs <= begin + (from + 0.25) * length)
    .map(({ bytes }) => bytes);
  return some.length < SAMPLES_LEAST ? NaN : quantile(some, 0.5);
}

function lengthOf(life: readonly HeapSample[]): number {
  return (life.at(-1)?.atMs ?? 0) - (life[0]?.atMs ?? 0);
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
