import type { PairName } from "../region-names.ts";
import type { Revocations } from "./judge-limits.ts";
import { isPaid, nameOf } from "./trace.ts";
import type { FaultWindow, Restart, Trace, Verdict } from "./trace.ts";

/** Around a restart: a connection may have been accepted by the old process, or find none yet. */
const RESTART_SLACK_MS = 1000;

/** Whom the load belongs to, for what may be answered to it. */
export type Parties = {
  /** Organisations whose credit is meant to run out. */
  readonly dry: ReadonlySet<string>;
  /** End users with a quota, as `organisation external_id`. */
  readonly capped: ReadonlySet<string>;
  /** Organisations with a limit of their own. */
  readonly limited: ReadonlySet<string>;
  readonly revocations: Revocations;
  /** The longest that a request may run, in ms: then it is ended, as an upstream's failure. */
  readonly runMaxMs: number;
};

const OWN_FAULTS = new Set([
  "home_region_unreachable",
  "overloaded",
  "prices_unavailable",
  "storage_unavailable",
]);
/** Shapes that are wrong on purpose: the one status that each must get. */
const WRONG: Readonly<Record<string, number>> = {
  "unknown model": 404,
  "wrong field": 400,
  "wrong region": 403,
};

/**
 * No 5xx but the 503s with a retry-after and what an upstream was made to fail with; every refusal is one
 * that its request could earn, a 401 only for a key that is forged or revoked.
 */
export function judgeAnswers(
  traces: readonly Trace[],
  restarts: readonly Restart[],
  parties: Parties,
): Verdict {
  const broken: string[] = [];
  let [ownFaults, lost, overdue] = [0, 0, 0];
  for (const trace of traces) {
    const { status, fate, forced } = trace;
    const fault = faultOf(trace, restarts, parties);
    if (fault !== null) broken.push(`${nameOf(trace)}: ${fault}`);
    if (status === 503 && forced !== "overload") ownFaults++;
    if (fate === "broken") lost++;
    if ((status === 502 || fate === "cut") && forced === "nothing" && fault === null) overdue++;
  }
  return {
    promise: "no answer but the error table's, no 5xx but a 503 with retry-after",
    figure: `${traces.length} requests, ${ownFaults} times 503, ${lost} connections lost to restarts, ${overdue} at their deadline`,
    broken,
  };
}

function faultOf(trace: Trace, restarts: readonly Restart[], parties: Parties): string | null {
  const { fate, status, kind, forced } = trace;
  const unended = endFault(trace, restarts);
  if (unended !== null || status === null) return unended;
  if (status !== 200) return refusalFault(trace, parties);
  if (kind === "forged" || kind === "wrong") return "answered 200";
  const isForced = forced === "break" || isOverdue(trace, parties);
  return fate === "cut" && !isForced ? "the stream ended with an error" : null;
}

/** What is wrong with how it came to its end: a stream says how it ends, whatever happens around it. */
function endFault(trace: Trace, restarts: readonly Restart[]): string | null {
  const { fate, status, received, region, sentMs, endedMs } = trace;
  if (fate === "stuck") return `not answered ${lasted(trace)}`;
  if (fate === "mute") return `a stream without a last event, ended after ${received} characters`;
  const isRestarting = restarts.some(
    ({ region: where, fromMs, untilMs }) =>
      where === region &&
      sentMs <= untilMs + RESTART_SLACK_MS &&
      endedMs >= fromMs - RESTART_SLACK_MS,
  );
  if (fate !== "broken" || isRestarting) return null;
  const came = `${status ?? "no"} headers, ${received} characters of the body`;
  return `connection cut ${lasted(trace)} (${came}), and ${region} was not restarting`;
}

function lasted({ sentMs, endedMs }: Trace): string {
  return `${Math.round(endedMs - sentMs)} ms after it was sent`;
}

/** Whether it took as long as a request may at most: on a drowned machine every upstream is slow. */
function isOverdue({ sentMs, endedMs }: Trace, { runMaxMs }: Parties): boolean {
  return endedMs - sentMs >= runMaxMs;
}

function refusalFault(trace: Trace, parties: Parties): string | null {
  const { status, type, code, retryAfter, kind, shape } = trace;
  const isWrong = kind === "wrong" && status === WRONG[shape];
  const isEarned = isWrong || (EARNED[status ?? 0]?.(trace, parties) ?? false);
  if (isEarned && hasSoundRetry(trace)) return null;
  const said = `${status} ${type ?? "without a type"} ${code ?? ""}`.trim();
  const fault = isEarned ? `retry-after ${retryAfter}` : "which it could not earn";
  return `${said} ${lasted(trace)}, ${fault}`;
}

/** A 503 and a key's 429 say when to come again, in seconds. */
function hasSoundRetry({ status, type, retryAfter }: Trace): boolean {
  const isTimed = status === 503 || (status === 429 && type === "rate_limit_exceeded");
  const after = Number(retryAfter ?? NaN);
  return !isTimed || (Number.isSafeInteger(after) && after >= 1 && after <= 60);
}

/** Which requests may be refused with a status. */
const EARNED: Readonly<Record<number, (trace: Trace, parties: Parties) => boolean>> = {
  401: ({ type, keyId }, { revocations }) =>
    type === "invalid_api_key" && (keyId === null || revocations.has(keyId)),
  402: (trace, { dry }) =>
    trace.type === "insufficient_balance" && isPaid(trace) && dry.has(trace.orgId ?? ""),
  429: ({ type, code, keyId, orgId, user, isOrganizationLimit }, { capped, limited }) =>
    type === "rate_limit_exceeded"
      ? keyId !== null && (!isOrganizationLimit || limited.has(orgId ?? ""))
      : code === "end_user_quota_exceeded" && capped.has(`${orgId} ${user}`),
  // an overloaded upstream may fail in other ways too: which one comes last decides
  502: (trace, parties) =>
    trace.type === "upstream_error" &&
    (["failure", "overload"].includes(trace.forced) || isOverdue(trace, parties)),
  503: ({ type, code, forced, keyId }) =>
    code === "upstream_overloaded"
      ? forced === "overload"
      : type === "api_error" && OWN_FAULTS.has(code ?? "") && keyId !== null,
};

/** How long after a fault its objects, connections and circuits may still be recovering. */
const RECOVERY_MS: Readonly<Record<FaultWindow["what"], number>> = {
  abort: 1000, // the next call starts the object again
  book: 6000,
  link: 6000,
  kill: 6000,
};
/** Of the paid requests that ran to their end and whose upstream was not made to fail. */
const ANSWERED_SHARE_MIN = 0.8;
/**
 * A forged key is refused without asking anything. Where that takes so long, the machine is drowned, and a call
 * that may take 2 s to the other region may not come back in time.
 */
const DROWNED_MS = 500;
const HOP_MS = 2000;

/**
 * Every 503 of our own has its cause near: a fault that could bring it, or the load is shed. And faults stop few:
 * most are answered.
 */
export function judgeUnavailable(
  traces: readonly Trace[],
  windows: readonly FaultWindow[],
): Verdict {
  const refused = traces.filter(({ status, code }) => {
    return status === 503 && code !== "upstream_overloaded"; // which `judgeAnswers` judges
  });
  const [isNew, isLate] = [firstUses(traces), drowning(traces)];
  const broken = refused
    .filter((trace) => trace.code !== "overloaded" && !isLate(trace))
    .filter((trace) => !windows.some((one) => explains(one, trace, isNew)))
    .map((trace) => `${nameOf(trace)}: 503 ${trace.code} ${lasted(trace)}, and nothing was broken`);
  const paid = traces.filter(
    (trace) => isPaid(trace) && trace.forced === "nothing" && !/left|broken/.test(trace.fate),
  );
  const answered = paid.filter(({ status, fate }) => fate === "whole" && (status ?? 500) < 500);
  const share = paid.length === 0 ? 0 : answered.length / paid.length;
  const percent = `${(share * 100).toFixed(1)} % of ${paid.length} paid requests`;
  if (share < ANSWERED_SHARE_MIN) {
    broken.push(`only ${percent} got a 200 or a refusal that they had earned`);
  }
  return {
    promise: "a 503 only near a fault or for want of room, nearly all answered",
    figure: `${refused.length} times 503 of ours, ${percent} answered`,
    broken,
  };
}

type Is = (trace: Trace) => boolean;

/** Whether the fault was on, or just over, while the request lived, where it could touch it. */
function explains(
  { what, region, fromMs, untilMs }: FaultWindow,
  trace: Trace,
  isNew: Is,
): boolean {
  if (trace.endedMs < fromMs || trace.sentMs > untilMs + RECOVERY_MS[what]) return false;
  // Only the line to the other region, and its life, can put home out of reach; and whose a key is that this region
  // has not met, home says by its register and its book.
  if (trace.code === "home_region_unreachable") {
    return region !== trace.region && (what === "link" || what === "kill" || isNew(trace));
  }
  // A new isolate reads the prices from the book before it sells.
  if (trace.code === "prices_unavailable") return what === "book" || what === "kill";
  return trace.code === "storage_unavailable" || trace.code === "overloaded";
}

/** Tells whether nothing that its key was answered in its region before shows that the region knew whose it is. */
function firstUses(traces: readonly Trace[]): Is {
  const known = traces.filter(({ status }) => status !== null && status !== 503);
  const byKey = Map.groupBy(known, ({ keyId, region }) => `${keyId} ${region}`);
  return ({ keyId, region, sentMs }) =>
    !(byKey.get(`${keyId} ${region}`) ?? []).some(({ endedMs }) => endedMs < sentMs);
}

/** Tells whether a call to the other region ran out of time while either region was slow to do nothing at all. */
function drowning(traces: readonly Trace[]): Is {
  const slow = traces.filter(isDrowned);
  return ({ code, sentMs, endedMs }) =>
    code === "home_region_unreachable" &&
    endedMs - sentMs >= HOP_MS &&
    slow.some((one) => one.sentMs <= endedMs && one.endedMs >= sentMs);
}

function isDrowned({ kind, fate, sentMs, endedMs }: Trace): boolean {
  return kind === "forged" && fate === "whole" && endedMs - sentMs >= DROWNED_MS;
}

/** A line of a Worker's log that must not be there, with its event. Unix ms. */
export type Mishap = {
  readonly event: string;
  readonly region: PairName;
  readonly atMs: number;
  readonly message: string;
};

/** What is left of a request whose objects were killed while it settled: it tries for 28 s. */
const AFTER_A_KILL = new Set(["settlement_unsaved", "settle_unknown"]);
const KILL_NEAR_MS = 30_000;
/** Beside those, bugs, whatever happens around them. */
const EVENTS = new Set([...AFTER_A_KILL, "exception", "settle_without_hold", "uncaught"]);

/** The event of a line that must not be there; null for any other line. */
export function mishapIn(event: string, message: string): string | null {
  if (EVENTS.has(event)) return event;
  // how workerd begins a line about what nobody caught; its own notes bear NOSENTRY
  const isRuntime = !message.startsWith("{") && !message.includes("NOSENTRY");
  return isRuntime && /uncaught/i.test(message) ? "uncaught" : null;
}

/** No bug, and no settlement that found no hold or no home, unless a region was killed just before. */
export function judgeMishaps(mishaps: readonly Mishap[], kills: readonly Restart[]): Verdict {
  const isNear = (atMs: number): boolean =>
    kills.some(({ fromMs, untilMs }) => atMs >= fromMs && atMs <= untilMs + KILL_NEAR_MS);
  const broken = mishaps
    .filter(({ event, atMs }) => !(AFTER_A_KILL.has(event) && isNear(atMs)))
    .map(({ event, region, message }) => `${region}: ${event}: ${message.slice(0, 300)}`);
  const excused = mishaps.length - broken.length;
  return {
    promise: "no exception, every settlement finds its hold and is saved",
    figure: `${broken.length} such lines, ${excused} more within ${KILL_NEAR_MS / 1000} s of a kill`,
    broken,
  };
}

/** How long a run must be to meet everything, whatever the machine: a storm of each kind, several times. */
const WHOLE_RUN_MS = 60_000;
/** What a run of any length meets. */
const ALWAYS = ["answers of 200", "forged keys refused", "keys revoked"];
/** Of what was to be sent: a machine that drowns in its own load shows nothing of the gateway. */
const LEFT_OUT_SHARE_MAX = 0.2;
/** Of forged keys, that are refused as if drowned; a machine at ease has one in a hundred, around kills. */
const DROWNED_SHARE_MAX = 0.1;

/** The load as it was meant and as it was. */
export type Load = {
  /** When it began and ended, Unix ms. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Requests that were sent, and left out at their time. */
  readonly sent: number;
  readonly leftOut: number;
  /** Forged keys that were refused, and those for which that took as long as on a drowned machine. */
  readonly refused: number;
  readonly drowned: number;
};

/** What was sent of a load, and how fast the machine was meanwhile. */
export function loadOf(
  traces: readonly Trace[],
  load: Pick<Load, "fromMs" | "untilMs" | "leftOut">,
): Load {
  const refused = traces.filter(({ kind, fate }) => kind === "forged" && fate === "whole").length;
  return { ...load, sent: traces.length, refused, drowned: traces.filter(isDrowned).length };
}

/**
 * A run in which nothing was tried proves nothing: how often the load met each thing. One shorter than a minute must
 * have met some, and says of the others only how often.
 */
export function judgeReach(met: Readonly<Record<string, number>>, load: Load): Verdict {
  const isWhole = load.untilMs - load.fromMs >= WHOLE_RUN_MS;
  const wanted = isWhole ? [...new Set([...ALWAYS, ...Object.keys(met)])] : ALWAYS;
  const broken = wanted.filter((what) => (met[what] ?? 0) < 1).map((what) => `no ${what}`);
  const figure = Object.entries(met).map(([what, count]) => `${count} ${what}`);
  return unlessTooSlow(
    { promise: "everything was tried", figure: figure.join(", "), broken },
    load,
  );
}

/** A verdict that hangs on time: on a machine that could not bear its load it says nothing of the gateway. */
export function unlessTooSlow(verdict: Verdict, load: Omit<Load, "fromMs" | "untilMs">): Verdict {
  const { sent, leftOut, refused, drowned } = load;
  const due = sent + leftOut;
  const isLate = drowned > refused * DROWNED_SHARE_MAX;
  if (leftOut <= due * LEFT_OUT_SHARE_MAX && !isLate) return verdict;
  const why =
    leftOut > due * LEFT_OUT_SHARE_MAX
      ? `${leftOut} of ${due} requests were left out`
      : `${drowned} of ${refused} forged keys were refused after ${DROWNED_MS} ms or more`;
  return { ...verdict, broken: [], notJudged: `the machine is too slow: ${why}` };
}
