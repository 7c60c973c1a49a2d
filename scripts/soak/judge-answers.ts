import type { Revocations } from "./judge-keys.ts";
import { nameOf } from "./trace.ts";
import type { Restart, Trace, Verdict } from "./trace.ts";

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

const OWN_FAULTS = new Set(["home_region_unreachable", "overloaded", "storage_unavailable"]);
const PAID = new Set(["json", "stream", "embeddings"]);
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
    const fault = faultOf(trace, restarts, parties);
    if (fault !== null) broken.push(`${nameOf(trace)}: ${fault}`);
    if (trace.status === 503 && trace.forced !== "overload") ownFaults++;
    if (trace.fate === "broken") lost++;
    if (isFailed(trace) && trace.forced === "nothing" && fault === null) overdue++;
  }
  return {
    promise: "no answer but the error table's, no 5xx but a 503 with retry-after",
    figure: `${traces.length} requests, ${ownFaults} times 503, ${lost} connections lost to restarts, ${overdue} at their deadline`,
    broken,
  };
}

function faultOf(trace: Trace, restarts: readonly Restart[], parties: Parties): string | null {
  const { fate, status } = trace;
  const unended = endFault(trace, restarts);
  if (unended !== null) return unended;
  if (status === null) return null;
  if (status !== 200) return refusalFault(trace, parties);
  if (trace.kind === "forged" || trace.kind === "wrong") return "answered 200";
  const isForced = trace.forced === "break" || isOverdue(trace, parties);
  return fate === "cut" && !isForced ? "the stream ended with an error" : null;
}

/** What is wrong with how it came to its end: a stream says how it ends, whatever happens around it. */
function endFault(trace: Trace, restarts: readonly Restart[]): string | null {
  const { fate, status, received, region } = trace;
  if (fate === "stuck") return `not answered ${lasted(trace)}`;
  if (fate === "mute") return `a stream without a last event, ended after ${received} characters`;
  if (fate !== "broken" || isDuring(trace, restarts)) return null;
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

/** An overloaded upstream may fail in other ways too: which one comes last decides. */
function isMadeToFail({ forced }: Trace): boolean {
  return forced === "failure" || forced === "overload";
}

function isFailed({ status, fate }: Trace): boolean {
  return status === 502 || fate === "cut";
}

function isDuring({ region, sentMs, endedMs }: Trace, restarts: readonly Restart[]): boolean {
  return restarts.some(
    (one) =>
      one.region === region &&
      sentMs <= one.untilMs + RESTART_SLACK_MS &&
      endedMs >= one.fromMs - RESTART_SLACK_MS,
  );
}

function refusalFault(trace: Trace, parties: Parties): string | null {
  const { status, type, code } = trace;
  const said = `${status} ${type ?? "without a type"} ${code ?? ""}`.trim();
  const fault = mayBe(trace, parties) ? retryFault(trace) : "which it could not earn";
  return fault === null ? null : `${said} ${lasted(trace)}, ${fault}`;
}

type May = (trace: Trace, parties: Parties) => boolean;
/** Which requests may be refused with a status. */
const EARNED: Readonly<Record<number, May>> = {
  401: ({ type, keyId }, { revocations }) =>
    type === "invalid_api_key" && (keyId === null || revocations.has(keyId)),
  402: ({ type, kind, orgId }, { dry }) =>
    type === "insufficient_balance" && PAID.has(kind) && dry.has(orgId ?? ""),
  429: ({ type, code, keyId, orgId, user, isOrganizationLimit }, { capped, limited }) =>
    type === "rate_limit_exceeded"
      ? keyId !== null && (!isOrganizationLimit || limited.has(orgId ?? ""))
      : code === "end_user_quota_exceeded" && capped.has(`${orgId} ${user}`),
  502: (trace, parties) =>
    trace.type === "upstream_error" && (isMadeToFail(trace) || isOverdue(trace, parties)),
  503: ({ type, code, forced, keyId }) =>
    code === "upstream_overloaded"
      ? forced === "overload"
      : type === "api_error" && OWN_FAULTS.has(code ?? "") && keyId !== null,
};

function mayBe(trace: Trace, parties: Parties): boolean {
  const status = trace.status ?? 0;
  if (trace.kind === "wrong" && status === WRONG[trace.shape]) return true;
  return EARNED[status]?.(trace, parties) ?? false;
}

/** A 503 and a key's 429 say when to come again. */
function retryFault({ status, type, retryAfter }: Trace): string | null {
  const isTimed = status === 503 || (status === 429 && type === "rate_limit_exceeded");
  if (!isTimed) return null;
  const seconds = Number(retryAfter ?? NaN);
  const isSound = Number.isSafeInteger(seconds) && seconds >= 1 && seconds <= 60;
  return isSound ? null : `retry-after ${retryAfter}`;
}
