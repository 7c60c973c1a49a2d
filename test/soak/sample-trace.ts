import type { Estate, Evidence, LedgerRow, Stored, Trace } from "./trace.ts";
import { mintId } from "../../src/shared/id.ts";

/** Time of a run's first request, Unix ms. */
export const START = Date.UTC(2031, 2, 10, 12);

/** Returns the ID of a request `ms` after the start. */
export function idAt(ms: number): string {
  return mintId("req_", START + ms);
}

/**
 * Returns the trace of a complete chat response for the organization `org`, with a cost of 40
 * micro-credits.
 */
export function traceOf(more: Partial<Trace> = {}): Trace {
  const sentMs = more.sentMs ?? START;
  const what = { kind: "json", shape: "sandbox/echo", forced: "nothing", region: "eu" } as const;
  const whose = { orgId: "org", keyId: "key", user: null };
  const times = { sentMs, answeredMs: sentMs + 10, firstByteMs: sentMs + 10, endedMs: sentMs + 12 };
  const answer = { fate: "whole", received: 400, status: 200, id: idAt(sentMs - START) } as const;
  const refusal = { type: null, code: null, retryAfter: null };
  const limits = { isAdmitted: true, isOrganizationLimit: false };
  const receipt = { cost: 40, usage: { input: 10, output: 15 } };
  return { ...what, ...whose, ...times, ...answer, ...refusal, ...limits, ...receipt, ...more };
}

/** Returns the trace of a client that disconnected before the headers, and so has no request ID. */
export function disconnectedAt(ms: number, more: Partial<Trace> = {}): Trace {
  const unknown = { id: null, status: null, answeredMs: null, firstByteMs: null } as const;
  const at = { sentMs: START + ms, endedMs: START + ms + 5, isAdmitted: false };
  return traceOf({ ...unknown, ...at, fate: "left", cost: null, usage: null, ...more });
}

export function rejectionOf(status: number, type: string, more: Partial<Trace> = {}): Trace {
  return traceOf({ status, type, cost: null, usage: null, ...more });
}

/** Returns an organization with 1000 micro-credits and charges for these requests. */
export function estateOf(
  charges: readonly (readonly [id: string, micros: number])[],
  more: Partial<Estate> = {},
): Estate {
  let balance = 0;
  const row = (kind: string, amount_micro: number, id: string | null, seq: number): LedgerRow => {
    balance += amount_micro;
    return { seq, kind, amount_micro, balance_micro: balance, generation_id: id };
  };
  const credit = row("credit", 1000, null, 1);
  const ledger = [credit, ...charges.map(([id, m], i) => row("usage", 0 - m, id, i + 2))];
  const rest = { openHolds: 0, held: 0, credited: 1000, book: balance, differences: [] };
  return { orgId: "org", balance, ledger, ...rest, ...more };
}

/** Returns the stored admissions of a key with 60 requests per minute, in ms after the start. */
export function logOf(admissions: readonly number[], more: Partial<Stored> = {}): Stored {
  const key = { keyId: "key", region: "eu" } as const;
  return { key, whose: "key", limit: 60, at: admissions.map((ms) => START + ms), ...more };
}

/**
 * Returns a minimal run, in which the EU was killed for half a second and a key was revoked soon
 * after the start.
 */
export function evidenceOf(more: Partial<Evidence> = {}): Evidence {
  const kill = { what: "kill", region: "eu", fromMs: START, untilMs: START + 500 } as const;
  return {
    traces: [],
    windows: [kill],
    done: { aborts: 1, "book outages": 1, "link cuts": 1, kills: 1, crons: 0, missed: 0 },
    revocations: new Map([["key", START + 100]]),
    load: { fromMs: START - 20_000, untilMs: START + 80_000, leftOut: 0 },
    runMaxMs: 20_000,
    dry: new Set(["dry"]),
    capped: new Set(["org bob"]),
    estates: [],
    outboxes: [],
    stored: [],
    heaps: [],
    mishaps: [],
    ...more,
  };
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
