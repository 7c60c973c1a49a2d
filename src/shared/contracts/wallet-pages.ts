import type { EventRecord, EventType } from "../event.ts";
import type { FailedRequest } from "../failed-request.ts";
import type { Failure } from "../failure.ts";
import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";
import type { HoldPurpose } from "../placed-hold.ts";
import type { TagFilter } from "./reports.ts";

/** A ledger row. All amounts of a ledger add up to the balance. Times are Unix ms. */
export type LedgerRow = {
  readonly seq: number;
  readonly kind: "usage" | "credit" | "expire" | "shortfall" | "rollup";
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  /** The `shortfall` that the operator pays. It doesn't change the balance. */
  readonly absorbedMicro: Micros;
  readonly createdAt: number;
  readonly reference: string | null;
  readonly generationId: string | null;
};
export type LedgerPage = { readonly rows: readonly LedgerRow[]; readonly nextAfterSeq: number };

export type SettledGeneration = Generation & {
  readonly id: string;
  readonly externalId: string | null;
  /** Admission time (Unix ms). */
  readonly createdAt: number;
  readonly costMicro: Micros;
  readonly heldMicro: Micros;
  readonly absorbedMicro: Micros;
};

/**
 * The state of a request. `held` can change. An `expired` hold can still be settled. `refused`: the
 * hold of another region's request was rejected.
 */
export type RequestState = "held" | "settled" | "voided" | "expired" | "refused";

/**
 * The outcome of a settled request (`failed` with an error, otherwise `succeeded`), or the state of
 * another request.
 */
export type RequestOutcome = RequestState | "succeeded" | "failed";

/** A request that placed a hold. `generation` is set after settlement. */
export type RequestRecord = {
  readonly id: string;
  readonly state: RequestState;
  readonly keyId: string | null;
  readonly externalId: string | null;
  readonly createdAt: number;
  readonly heldMicro: Micros | null;
  readonly generation: SettledGeneration | null;
  readonly failed?: FailedRequest | null;
  readonly failure?: Failure | null;
};
/**
 * A filter on requests admitted from `fromMs` to before `beforeMs` (Unix ms), newest first, after
 * the ID `after`. Null matches all.
 */
export type RequestQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly after: string | null;
  readonly limit: number;
  readonly state: RequestOutcome | null;
  readonly model: string | null;
  readonly externalId: string | null;
  readonly keyIds: readonly string[] | null;
  readonly states?: readonly RequestOutcome[] | undefined;
  readonly models?: readonly string[] | undefined;
  readonly providers?: readonly string[] | undefined;
  readonly codes?: readonly string[] | undefined;
  readonly tag?: TagFilter | undefined;
};
/** A page of requests. Only a null `nextAfter` marks the end; a short page doesn't. */
export type RequestPage = {
  readonly requests: readonly RequestRecord[];
  readonly nextAfter: string | null;
};

export type OpenHoldRecord = {
  readonly id: string;
  readonly keyId: string;
  readonly externalId: string | null;
  readonly admittedAt: number;
  readonly grantedMicro: Micros;
  readonly expiresAt: number;
  readonly purpose?: HoldPurpose | null;
};
export type HoldsPage = {
  readonly holds: readonly OpenHoldRecord[];
  readonly nextAfter: string | null;
};

/**
 * A filter on events from `from` to before `to` (Unix ms), newest first, after the ID `after`. Null
 * matches all.
 */
export type EventQuery = {
  readonly type: EventType | null;
  readonly from: number | null;
  readonly to: number | null;
  readonly limit: number;
  readonly after: string | null;
  readonly memberIds?: readonly string[];
};
/**
 * A page of events, newest first. `dropped` counts the events before `until` (Unix ms) that a full
 * log deleted.
 */
export type EventPage = {
  readonly events: readonly EventRecord[];
  readonly nextAfter: string | null;
  readonly dropped: { readonly events: number; readonly until: number } | null;
};
