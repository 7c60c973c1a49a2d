import {
  judgeAnswers,
  judgeMishaps,
  judgeReach,
  judgeUnavailable,
  unlessTooSlow,
} from "./judge-answers.ts";
import type { Load, Met, Mishap, Parties, Room } from "./judge-answers.ts";
import { judgeBooks, judgeBounds, judgeCharges, judgeLedgers } from "./judge-money.ts";
import { judgeLimits, judgePlaces, judgeRevocations } from "./judge-keys.ts";
import type { Crowd, GrantLog, RegisterLog } from "./judge-keys.ts";
import type { Estate, Reading } from "./judge-money.ts";
import { judgeExpiries, judgeMemory, judgeResidue, judgeRest } from "./judge-rest.ts";
import type { Depth, MemorySample, OutboxDepth, Residue } from "./judge-rest.ts";
import type { FaultWindow, Trace, Verdict } from "./trace.ts";

/** All that is known when the regions are at rest again. */
export type Evidence = {
  readonly traces: readonly Trace[];
  readonly windows: readonly FaultWindow[];
  readonly parties: Parties;
  readonly estates: readonly Estate[];
  readonly readings: readonly Reading[];
  readonly depths: readonly Depth[];
  readonly outboxes: readonly OutboxDepth[];
  readonly registers: readonly RegisterLog[];
  readonly grants: readonly GrantLog[];
  readonly residues: readonly Residue[];
  readonly memory: readonly MemorySample[];
  /** The longest that a hold may be open, in ms. */
  readonly holdMaxMs: number;
  readonly met: Met;
  readonly load: Load;
  readonly crowds: readonly Crowd[];
  readonly mishaps: readonly Mishap[];
  readonly room: Room;
};

/** Every invariant, each with its figure and what broke it. */
export function judge(evidence: Evidence): readonly Verdict[] {
  const { traces, estates, parties, windows, load, room } = evidence;
  const restarts = windows.filter(({ what }) => what === "kill");
  const afterMs = room.lingerMs + parties.runMaxMs;
  return [
    judgeLedgers(estates),
    judgeBooks(estates),
    judgeRest(estates, evidence.outboxes, evidence),
    judgeExpiries(evidence.grants, restarts, load),
    judgeCharges(traces, estates, { kills: restarts, afterMs }),
    judgeRevocations(traces, parties.revocations),
    judgeLimits(traces, evidence.registers, evidence.grants),
    judgeAnswers(traces, restarts, parties),
    unlessTooSlow(judgeUnavailable(traces, windows, room), load),
    judgePlaces(evidence.crowds, room.inFlightMax),
    judgeMishaps(evidence.mishaps, restarts),
    judgeBounds(evidence.readings, estates),
    judgeMemory(evidence.memory),
    judgeResidue(evidence.residues),
    judgeReach(evidence.met, load),
  ];
}
