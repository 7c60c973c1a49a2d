import { isPaid, killsIn, nameOf, when } from "./trace.ts";
import type { Evidence, FaultWindow, Judged, Trace } from "./trace.ts";

/**
 * Time around a restart. The old process might have accepted a connection, or the new one might not
 * listen yet.
 */
const RESTART_SLACK_MS = 1000;
const OWN_FAULTS = new Set([
  "home_region_unreachable",
  "overloaded",
  "prices_unavailable",
  "storage_unavailable",
]);
/** Invalid requests, with the status that each must get. */
const WRONG: Readonly<Record<string, number>> = {
  "unknown model": 404,
  "wrong field": 400,
  "wrong region": 403,
};

/**
 * Checks that the only 5xx responses are 503 with retry-after and forced provider failures. Every
 * rejection must fit its request, and a 401 requires a forged or revoked key.
 */
export function judgeResponses(evidence: Evidence): Judged {
  const { traces } = evidence;
  const kills = killsIn(evidence);
  const faults = new Map(traces.map((trace) => [trace, faultOf(trace, kills, evidence)]));
  const count = (is: (trace: Trace) => boolean): number => traces.filter(is).length;
  const ownFaults = count(({ status, forced }) => status === 503 && forced !== "overload");
  const lost = count(({ fate }) => fate === "broken");
  const overdue = count((trace) => {
    const isEnded = trace.status === 502 || trace.fate === "cut";
    return isEnded && trace.forced === "nothing" && faults.get(trace) === null;
  });
  return {
    figure: `${traces.length} requests, ${ownFaults} times 503, ${lost} connections lost to restarts, ${overdue} at their deadline`,
    broken: [...faults].flatMap(([trace, fault]) =>
      when(fault !== null, `${nameOf(trace)}: ${fault}`),
    ),
  };
}

/** Returns the fault in a request's end or response, or null. */
function faultOf(trace: Trace, kills: readonly FaultWindow[], evidence: Evidence): string | null {
  const unended = endFault(trace, kills);
  const { fate, status, kind, forced } = trace;
  if (unended !== null || status === null) return unended;
  if (status !== 200) return refusalFault(trace, evidence);
  if (kind === "forged" || kind === "wrong") return "answered 200";
  const isForced = forced === "break" || isOverdue(trace, evidence);
  return fate === "cut" && !isForced ? "the stream ended with an error" : null;
}

/** Every stream must report its end. */
function endFault(trace: Trace, kills: readonly FaultWindow[]): string | null {
  const { fate, status, received, region } = trace;
  const came = `${status ?? "no"} headers, ${received} bytes of the body`;
  if (fate === "stuck") return `not answered ${lasted(trace)} (${came})`;
  if (fate === "mute") return `a stream without a last event (${came})`;
  const isNear = kills.some((kill) => kill.region === region && isDuring(trace, kill));
  if (fate !== "broken" || isNear) return null;
  return `connection cut ${lasted(trace)} (${came}), and ${region} was not restarting`;
}

function isDuring({ sentMs, endedMs }: Trace, { fromMs, untilMs }: FaultWindow): boolean {
  return sentMs <= untilMs + RESTART_SLACK_MS && endedMs >= fromMs - RESTART_SLACK_MS;
}

function lasted({ sentMs, endedMs }: Trace): string {
  return `${Math.round(endedMs - sentMs)} ms after it was sent`;
}

/**
 * Reports whether a request took its maximum time, because every provider is slow on an overloaded
 * machine.
 */
function isOverdue({ sentMs, endedMs }: Trace, { runMaxMs }: Evidence): boolean {
  return endedMs - sentMs >= runMaxMs;
}

function refusalFault(trace: Trace, evidence: Evidence): string | null {
  const { status, type, code, retryAfter, kind, shape } = trace;
  const isWrong = kind === "wrong" && status === WRONG[shape];
  const isEarned = isWrong || (EARNED[status ?? 0]?.(trace, evidence) ?? false);
  if (isEarned && hasSoundRetry(trace)) return null;
  const description = `${status} ${type ?? "without a type"} ${code ?? ""}`.trim();
  const fault = isEarned ? `retry-after ${retryAfter}` : "which it could not earn";
  return `${description} ${lasted(trace)}, ${fault}`;
}

/** Reports whether a 503 or a key's 429 has a valid retry-after in seconds. */
function hasSoundRetry({ status, type, retryAfter }: Trace): boolean {
  const isTimed = status === 503 || (status === 429 && type === "rate_limit_exceeded");
  const after = Number(retryAfter ?? NaN);
  return !isTimed || (Number.isSafeInteger(after) && after >= 1 && after <= 60);
}

/** The statuses that can reject a request, with their conditions. */
const EARNED: Readonly<Record<number, (trace: Trace, evidence: Evidence) => boolean>> = {
  401: ({ type, keyId }, { revocations }) =>
    type === "invalid_api_key" && (keyId === null || revocations.has(keyId)),
  402: (trace, { dry }) =>
    trace.type === "insufficient_balance" && isPaid(trace) && dry.has(trace.orgId ?? ""),
  429: ({ type, code, keyId, orgId, user, isOrganizationLimit }, { capped, stored }) =>
    type === "rate_limit_exceeded"
      ? keyId !== null && (!isOrganizationLimit || stored.some((log) => log.whose === orgId))
      : code === "end_user_quota_exceeded" && capped.has(`${orgId} ${user}`),
  // an overloaded provider can also fail otherwise, and the last failure counts
  502: (trace, evidence) =>
    trace.type === "upstream_error" &&
    (["failure", "overload"].includes(trace.forced) || isOverdue(trace, evidence)),
  503: ({ type, code, forced, keyId }) =>
    code === "upstream_overloaded"
      ? forced === "overload"
      : type === "api_error" && OWN_FAULTS.has(code ?? "") && keyId !== null,
};

/** Recovery time of objects, connections and circuit breakers after a fault. */
const RECOVERY_MS: Readonly<Record<FaultWindow["what"], number>> = {
  abort: 1000, // the next call starts the object again
  book: 6000,
  link: 6000,
  kill: 6000,
};
/** Minimum share of answered paid requests without provider faults. */
const ANSWERED_SHARE_MIN = 0.8;
/**
 * Forged keys are rejected without any call. If that takes this long, the machine is overloaded,
 * and a call to the other region can miss its limit of 2 s.
 */
const DROWNED_MS = 500;
const HOP_MS = 2000;

/**
 * Checks that every 503 of our own has a fault or load shedding as its cause, and that most
 * requests are answered.
 */
export function judgeUnavailable({ traces, windows }: Evidence): Judged {
  const refused = traces.filter(
    // `judgeResponses` checks those
    ({ status, code }) => status === 503 && code !== "upstream_overloaded",
  );
  const known = traces.filter(({ status }) => status !== null && status !== 503);
  const byKey = Map.groupBy(known, ({ keyId, region }) => `${keyId} ${region}`);
  const slow = traces.filter(isDrowned);
  const isCaused = (trace: Trace): boolean => {
    const { code, keyId, region, sentMs, endedMs } = trace;
    if (code === "overloaded") return true;
    const isFirst = !byKey.get(`${keyId} ${region}`)?.some((one) => one.endedMs < sentMs);
    const isLate = code === "home_region_unreachable" && endedMs - sentMs >= HOP_MS;
    return (
      windows.some((one) => explains(one, trace, isFirst)) ||
      (isLate && slow.some((one) => one.sentMs <= endedMs && one.endedMs >= sentMs))
    );
  };
  const paid = traces.filter(
    (trace) => isPaid(trace) && trace.forced === "nothing" && !/left|broken/.test(trace.fate),
  );
  const answered = paid.filter(({ status, fate }) => fate === "whole" && (status ?? 500) < 500);
  const share = paid.length === 0 ? 0 : answered.length / paid.length;
  const percent = `${(share * 100).toFixed(1)} % of ${paid.length} paid requests`;
  return {
    figure: `${refused.length} times 503 of ours, ${percent} answered`,
    broken: [
      ...refused
        .filter((trace) => !isCaused(trace))
        .map((one) => `${nameOf(one)}: 503 ${one.code} ${lasted(one)}, and nothing was broken`),
      ...when(share < ANSWERED_SHARE_MIN, `only ${percent} got a 200 or an earned refusal`),
    ],
  };
}

/**
 * Reports whether a fault in reach of the request lasted or had just ended while the request ran.
 */
function explains(fault: FaultWindow, trace: Trace, isFirst: boolean): boolean {
  const { what, region, fromMs, untilMs } = fault;
  if (trace.endedMs < fromMs || trace.sentMs > untilMs + RECOVERY_MS[what]) return false;
  // Only the connection to the other region and its process can make the home region unreachable.
  // The home region identifies unknown keys by key object and database.
  if (trace.code === "home_region_unreachable") {
    return region !== trace.region && (what === "link" || what === "kill" || isFirst);
  }
  // A new isolate must read prices from the database before it sells.
  if (trace.code === "prices_unavailable") return what === "book" || what === "kill";
  return trace.code === "storage_unavailable";
}

function isDrowned({ kind, fate, sentMs, endedMs }: Trace): boolean {
  return kind === "forged" && fate === "whole" && endedMs - sentMs >= DROWNED_MS;
}

/** Log events of a request whose objects were killed while it settled. It retries for 28 s. */
const AFTER_A_KILL = new Set(["settlement_unsaved", "settle_unknown"]);
const KILL_NEAR_MS = 30_000;
/** All log events that are bugs. `AFTER_A_KILL` allows some of them after a kill. */
const EVENTS = new Set([...AFTER_A_KILL, "exception", "settle_without_hold", "uncaught"]);

/** Returns the event of a log line that reports a bug, else null. */
export function mishapIn(event: string, message: string): string | null {
  if (EVENTS.has(event)) return event;
  // workerd's line for an uncaught error; its own notes contain NOSENTRY
  const isRuntime = !message.startsWith("{") && !message.includes("NOSENTRY");
  return isRuntime && /uncaught/i.test(message) ? "uncaught" : null;
}

/**
 * Checks that the log has no bugs. Settlements can only miss their hold or home region shortly
 * after a kill.
 */
export function judgeMishaps(evidence: Evidence): Judged {
  const { mishaps } = evidence;
  const isNear = (atMs: number): boolean =>
    killsIn(evidence).some((one) => atMs >= one.fromMs && atMs <= one.untilMs + KILL_NEAR_MS);
  const broken = mishaps.filter(({ event, atMs }) => !(AFTER_A_KILL.has(event) && isNear(atMs)));
  const excused = mishaps.length - broken.length;
  return {
    figure: `${broken.length} such lines, ${excused} more within ${KILL_NEAR_MS / 1000} s of a kill`,
    broken: broken.map((one) => `${one.region}: ${one.event}: ${one.message.slice(0, 300)}`),
  };
}

/** Length of a run that includes every storm several times. */
const WHOLE_RUN_MS = 60_000;
/** Events that runs of any length include. */
const ALWAYS = ["answers of 200", "forged keys refused", "keys revoked"];
/** Share of skipped requests above which the machine is too slow for a verdict. */
const LEFT_OUT_SHARE_MAX = 0.2;
/**
 * Share of forged keys rejected late above which the machine is too slow. Usually 1%, around kills.
 */
const DROWNED_SHARE_MAX = 0.1;

/** Checks that the load included each event. A run of less than a minute only needs some. */
export function judgeReach({ traces, revocations, done, load }: Evidence): Judged {
  const count = (of: (trace: Trace) => boolean): number => traces.filter(of).length;
  const { crons: _, missed: __, ...faults } = done;
  const met: Readonly<Record<string, number>> = {
    "answers of 200": count(({ status }) => status === 200),
    "clients that left": count(({ fate }) => fate === "left"),
    "402s": count(({ status }) => status === 402),
    "429s": count(({ type }) => type === "rate_limit_exceeded"),
    "quota 429s": count(({ code }) => code === "end_user_quota_exceeded"),
    "forged keys refused": count(({ kind, status }) => kind === "forged" && status === 401),
    "keys revoked": [...revocations.values()].filter((atMs) => atMs !== null).length,
    "upstream failures": count(({ status }) => status === 502),
    ...faults,
  };
  const isWhole = load.untilMs - load.fromMs >= WHOLE_RUN_MS;
  const required = isWhole ? Object.keys(met) : ALWAYS;
  return {
    figure: Object.entries(met)
      .map(([what, times]) => `${times} ${what}`)
      .join(", "),
    broken: required.filter((what) => (met[what] ?? 0) < 1).map((what) => `no ${what}`),
  };
}

/** Returns the reason why this machine is too slow for timed checks, or null. */
export function slownessOf({ traces, load: { leftOut } }: Evidence): string | null {
  const due = traces.length + leftOut;
  const refused = traces.filter(({ kind, fate }) => kind === "forged" && fate === "whole").length;
  const drowned = traces.filter(isDrowned).length;
  const slow = "the machine is too slow:";
  const isLate = drowned > refused * DROWNED_SHARE_MAX;
  if (leftOut > due * LEFT_OUT_SHARE_MAX) {
    return `${slow} ${leftOut} of ${due} requests were left out`;
  }
  if (!isLate) return null;
  return `${slow} ${drowned} of ${refused} forged keys were refused after ${DROWNED_MS} ms or more`;
}
