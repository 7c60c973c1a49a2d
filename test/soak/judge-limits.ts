import { quantile } from "../../scripts/quantile.ts";
import { nameOf, seconds, when } from "./trace.ts";
import type { Evidence, HeapSample, Judged, Trace } from "./trace.ts";

const WINDOW_MS = 60_000;
/** Tolerated difference of the clock between two processes. */
const CLOCK_SLACK_MS = 20;
/** Stored admissions of a key. Longer lists are incomplete. */
const ADMISSIONS_KEPT = 1000;
const MIB = 1024 * 1024;
/** Minimum samples in a quarter of a process's life. */
const SAMPLES_LEAST = 2;
/** Allowed growth of a heap, which includes a minute's data. */
const GROWTH_BYTES_MAX = 4 * MIB;
const GROWTH_SHARE_MAX = 0.25;

/**
 * Checks that no region accepts a key after its DELETE returned. Later requests get 401, or 503 of
 * our own.
 */
export function judgeRevocations({ traces, revocations }: Evidence): Judged {
  const deadAt = ({ keyId }: Trace): number => revocations.get(keyId ?? "") ?? Infinity;
  const later = traces.filter((trace) => trace.sentMs > deadAt(trace));
  const refused = later.filter(({ status }) => status === 401);
  const admitted = later.filter(({ status }) => status !== null && ![401, 503].includes(status));
  const dead = [...revocations.values()].filter((atMs) => atMs !== null);
  return {
    figure: `${dead.length} keys revoked, ${later.length} requests after that, ${refused.length} of them 401`,
    broken: admitted.map((trace) => {
      const afterMs = (trace.sentMs - deadAt(trace)).toFixed(0);
      return `${nameOf(trace)}: ${trace.status}, sent ${afterMs} ms after DELETE was answered`;
    }),
  };
}

type Span = { readonly fromMs: number; readonly untilMs: number };

/**
 * Checks the limit in any 60 s, by stored admissions and separately by clients. Clients count
 * requests that were sent and answered within less than 60 s.
 */
export function judgeLimits({ traces, stored }: Evidence): Judged {
  const admitted = traces.filter(({ isAdmitted }) => isAdmitted);
  const byRegister = Map.groupBy(admitted, ({ keyId, region }) => `${keyId} ${region}`);
  const counts = stored.flatMap(({ key, whose, limit, at }) => {
    const most = mostWithin(at.map((ms) => ({ fromMs: ms, untilMs: ms })));
    const seen = key === null ? [] : (byRegister.get(`${key.keyId} ${key.region}`) ?? []);
    const spans = seen.map(({ sentMs, answeredMs, endedMs }) => {
      return { fromMs: sentMs, untilMs: (answeredMs ?? endedMs) + CLOCK_SLACK_MS };
    });
    return [
      { whose, limit, what: "stored", most },
      { whose, limit, what: "seen admitted", most: mostWithin(spans) },
    ];
  });
  const fullest = Math.max(0, ...counts.map(({ most, limit }) => most / limit));
  const registers = stored.filter(({ key }) => key !== null).length;
  const passed = counts.flatMap(({ whose, most, what, limit }) =>
    when(most > limit, `${whose}: ${most} ${what} in 60 s, limit ${limit}`),
  );
  return {
    figure: `fullest ${fullest.toFixed(3)} of its limit, ${registers} registers, ${stored.length - registers} organizations`,
    broken: [...passed, ...refusedTooEarly({ traces, stored })],
  };
}

/** Returns the maximum number of spans within one window shorter than 60 s. */
function mostWithin(spans: readonly Span[]): number {
  const ends = spans.map(({ untilMs }) => untilMs).toSorted((a, b) => a - b);
  const begins = spans.toSorted((a, b) => a.fromMs - b.fromMs);
  // Windows start at a span's start. Spans that started earlier don't count.
  let [most, ended] = [0, 0];
  let lasting: number[] = []; // ends of earlier spans that last beyond the window
  for (const [beginCount, { fromMs, untilMs }] of begins.entries()) {
    while ((ends[ended] ?? Infinity) < fromMs + WINDOW_MS) ended++;
    lasting = lasting.filter((until) => until >= fromMs + WINDOW_MS);
    most = Math.max(most, ended - (beginCount - lasting.length));
    lasting.push(untilMs);
  }
  return most;
}

/**
 * Returns 429 responses of keys whose stored admissions in the last 60 s didn't use up the limit.
 */
function refusedTooEarly({ traces, stored }: Pick<Evidence, "traces" | "stored">): string[] {
  const byKey = new Map(stored.map((log) => [`${log.key?.keyId} ${log.key?.region}`, log]));
  const refused = traces.filter(
    ({ status, type, isOrganizationLimit }) =>
      status === 429 && type === "rate_limit_exceeded" && !isOrganizationLimit,
  );
  return refused.flatMap((trace) => {
    const { limit, at } = byKey.get(`${trace.keyId} ${trace.region}`) ?? { limit: 0, at: [] };
    const sinceMs = trace.sentMs - WINDOW_MS - CLOCK_SLACK_MS;
    const used = at.filter((ms) => ms >= sinceMs && ms <= trace.endedMs + CLOCK_SLACK_MS).length;
    const isEarly = used < limit && at.length < ADMISSIONS_KEPT;
    return when(isEarly, `${nameOf(trace)}: 429 with ${used} of ${limit} used`);
  });
}

/**
 * Compares an isolate's memory after collections in its longest life, after the warm-up: the median
 * of the last quarter with that of the second.
 */
export function judgeMemory({ heaps }: Evidence): Judged {
  const regions = (["eu", "us"] as const).map((region) => {
    const samples = heaps.filter((one) => one.region === region);
    const lives = [...Map.groupBy(samples, ({ pid }) => pid).values()];
    const [life = []] = lives.toSorted((one, other) => lengthOf(other) - lengthOf(one));
    const [early, late] = [quarterOf(life, 0.25), quarterOf(life, 0.75)];
    const words = `${region} ${mib(early)} -> ${mib(late)} in ${seconds(lengthOf(life))}`;
    const isBroken = late - early > Math.max(GROWTH_BYTES_MAX, early * GROWTH_SHARE_MAX);
    // V8 writes the heap in blocks, which a short life might not fill
    return { isBroken, figure: Number.isNaN(early + late) ? `${region} not known` : words };
  });
  return {
    figure: regions.map(({ figure }) => figure).join(", "),
    broken: regions.flatMap(({ isBroken, figure }) => when(isBroken, `grew: ${figure}`)),
  };
}

/** Returns the median bytes of a quarter of a life, or NaN for too few samples. */
function quarterOf(life: readonly HeapSample[], from: number): number {
  const [begin, length] = [life[0]?.atMs ?? 0, lengthOf(life)];
  const [fromMs, untilMs] = [begin + from * length, begin + (from + 0.25) * length];
  const some = life.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
  const bytes = some.map((sample) => sample.bytes);
  return bytes.length < SAMPLES_LEAST ? NaN : quantile(bytes, 0.5);
}

function lengthOf(life: readonly HeapSample[]): number {
  return (life.at(-1)?.atMs ?? 0) - (life[0]?.atMs ?? 0);
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
