import * as answers from "./judge-responses.ts";
import * as limits from "./judge-limits.ts";
import * as money from "./judge-money.ts";
import type { Evidence, Judged, Verdict } from "./trace.ts";

/** A promise and its check. `isTimed`: only valid on a machine that can handle the load. */
type Invariant = {
  readonly promise: string;
  readonly judge: (evidence: Evidence) => Judged;
  readonly isTimed?: true;
};

/** Promises that must hold after a run, regardless of its faults. */
export const INVARIANTS = {
  ledgers: {
    promise: "sum of the ledger = balance = credits - charges",
    judge: money.judgeLedgers,
  },
  books: { promise: "home = book, by reconciling and by reading", judge: money.judgeDatabases },
  rest: { promise: "no open hold, nothing in an outbox", judge: money.judgeRest },
  charges: { promise: "nothing charged twice, wrongly or for nothing", judge: money.judgeCharges },
  revocations: {
    promise: "no key admitted after its revocation",
    judge: limits.judgeRevocations,
  },
  limits: { promise: "no limit passed in any 60 s", judge: limits.judgeLimits },
  answers: {
    promise: "no answer but the error table's, no 5xx but a 503 with retry-after",
    judge: answers.judgeResponses,
  },
  unavailable: {
    promise: "a 503 only near a fault or for want of room, nearly all answered",
    judge: answers.judgeUnavailable,
    isTimed: true,
  },
  mishaps: {
    promise: "no exception, every settlement finds its hold and is saved",
    judge: answers.judgeMishaps,
  },
  memory: { promise: "memory flat", judge: limits.judgeMemory },
  reach: { promise: "everything was tried", judge: answers.judgeReach, isTimed: true },
} satisfies Record<string, Invariant>;

/** Returns each promise with its measurement and the cases that broke it. */
export function verdictsOf(evidence: Evidence): readonly Verdict[] {
  const slow = answers.slownessOf(evidence);
  return Object.values<Invariant>(INVARIANTS).map(({ promise, judge, isTimed }) => {
    const { figure, broken } = judge(evidence);
    if (isTimed !== true || slow === null) return { promise, figure, broken };
    return { promise, figure, broken: [], notJudged: slow };
  });
}
