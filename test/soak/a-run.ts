import type { RegisterLog } from "../../scripts/soak/judge-limits.ts";
import type { Estate, LedgerRow } from "../../scripts/soak/judge-money.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { mintId } from "../../src/lib/id.ts";

/** When the first request of a run is sent, Unix ms. */
export const START = Date.UTC(2031, 2, 10, 12);

/** The id of a request that was minted `ms` after the start. */
export function idAt(ms: number): string {
  return mintId("req_", START + ms);
}

/** A completion of the organisation `org` that was answered whole and told its price of 40 micros. */
export function traceOf(more: Partial<Trace> = {}): Trace {
  const sentMs = more.sentMs ?? START;
  return {
    kind: "json",
    shape: "sandbox/echo",
    forced: "nothing",
    region: "eu",
    orgId: "org",
    keyId: "key",
    user: null,
    sentMs,
    answeredMs: sentMs + 10,
    firstByteMs: sentMs + 10,
    endedMs: sentMs + 12,
    fate: "whole",
    received: 400,
    status: 200,
    id: idAt(sentMs - START),
    type: null,
    code: null,
    cost: 40,
    usage: { input: 10, output: 15 },
    retryAfter: null,
    isAdmitted: true,
    isOrganizationLimit: false,
    ...more,
  };
}

/** A client that left before the headers came: it knows no id. */
export function leftAt(ms: number, more: Partial<Trace> = {}): Trace {
  const gone = {
    id: null,
    status: null,
    answeredMs: null,
    firstByteMs: null,
    cost: null,
    usage: null,
  } as const;
  const at = { sentMs: START + ms, endedMs: START + ms + 5 };
  return traceOf({ ...gone, ...at, fate: "left", isAdmitted: false, ...more });
}

/** A refusal. */
export function refusalOf(status: number, type: string, more: Partial<Trace> = {}): Trace {
  return traceOf({ status, type, cost: null, usage: null, ...more });
}

/** An organisation that was granted 1000 micros and charged for these requests. */
export function estateOf(
  charges: readonly (readonly [id: string, micros: number])[],
  more: Partial<Estate> = {},
): Estate {
  const ledger: LedgerRow[] = [
    { seq: 1, kind: "credit", amount_micro: 1000, balance_micro: 1000, generation_id: null },
  ];
  let balance = 1000;
  for (const [id, micros] of charges) {
    balance -= micros;
    ledger.push({
      seq: ledger.length + 1,
      kind: "usage",
      amount_micro: 0 - micros,
      balance_micro: balance,
      generation_id: id,
    });
  }
  return {
    orgId: "org",
    balance,
    openHolds: 0,
    held: 0,
    ledger,
    credited: 1000,
    book: balance,
    differences: [],
    ...more,
  };
}

/** A key of 60 a minute with these admissions, in ms after the start. */
export function logOf(admissions: readonly number[], more: Partial<RegisterLog> = {}): RegisterLog {
  const times = admissions.map((ms) => START + ms);
  return { keyId: "key", region: "eu", limit: 60, admissions: times, ...more };
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
