import { judgeAnswers, judgeReach } from "./judge-answers.ts";
import type { Met, Parties } from "./judge-answers.ts";
import { judgeCharges } from "./judge-charges.ts";
import { judgeLimits, judgeRevocations } from "./judge-keys.ts";
import type { GrantLog, LimiterLog } from "./judge-keys.ts";
import { judgeBooks, judgeBounds, judgeLedgers } from "./judge-money.ts";
import type { Estate, Reading } from "./judge-money.ts";
import { judgeExpiries, judgeMemory, judgeResidue, judgeRest } from "./judge-rest.ts";
import type { Depth, MemorySample, OutboxDepth, Residue } from "./judge-rest.ts";
import type { Restart, Trace, Verdict } from "./trace.ts";

/** All that is known when the regions are at rest again. */
export type Evidence = {
  readonly traces: readonly Trace[];
  readonly restarts: readonly Restart[];
  readonly parties: Parties;
  readonly estates: readonly Estate[];
  readonly readings: readonly Reading[];
  readonly depths: readonly Depth[];
  readonly outboxes: readonly OutboxDepth[];
  readonly limiters: readonly LimiterLog[];
  readonly grants: readonly GrantLog[];
  readonly residues: readonly Residue[];
  readonly memory: readonly MemorySample[];
  /** The longest that a hold may be open, in ms. */
  readonly holdMaxMs: number;
  /** How far a charge may pass a quota, in micros. */
  readonly allowance: number;
  readonly met: Met;
  /** How long the load was, ms. */
  readonly loadMs: number;
};

/** Every invariant, each with its figure and what broke it. */
export function judge(evidence: Evidence): readonly Verdict[] {
  const { traces, estates, parties } = evidence;
  return [
    judgeLedgers(estates),
    judgeBooks(estates),
    judgeRest(estates, evidence.outboxes, evidence),
    judgeExpiries(evidence.grants, evidence.restarts, parties.runMaxMs),
    judgeCharges(traces, estates),
    judgeRevocations(traces, parties.revocations),
    judgeLimits(traces, evidence.limiters, evidence.grants),
    judgeAnswers(traces, evidence.restarts, parties),
    judgeBounds(evidence.readings, estates, evidence.allowance),
    judgeMemory(evidence.memory),
    judgeResidue(evidence.residues),
    judgeReach(evidence.met, evidence.loadMs),
  ];
}
