import type { EventRecord, EventType } from "../event.ts";
import type { FailedRequest } from "../failed-request.ts";
import type { Failure } from "../failure.ts";
import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";
import type { Purpose } from "../placed-hold.ts";
import type { TagFilter } from "./reports.ts";

/** A ledger row. All amounts sum to the balance. Times are Unix ms. */
export type LedgerRow = {
  readonly seq: number;
  readonly kind: "usage" | "credit" | "expire" | "shortfall" | "rollup";
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  /** The amount that a `shortfall` row absorbed. It isn't part of the balance. */
  readonly absorbedMicro: Micros;
  readonly createdAt: number;
  readonly reference: string | null;
  readonly generationId: string | null;
};
export type LedgerPage = { readonly rows: readonly LedgerRow[]; readonly nextAfterSeq: number };

export type GenerationRecord = Generation & {
  readonly id: string;
  readonly externalId: string | null;
  /** Admission time (Unix ms). */
  readonly createdAt: number;
  readonly costMicro: Micros;
  readonly heldMicro: Micros;
  readonly absorbedMicro: Micros;
};

/** The state of a request. `held` is open; others are final, except that `expired` can still be settled. */
export type RequestState = "held" | "settled" | "voided" | "expired" | "refused";

/** A request that reached a hold. `generation` is present once settled. */
export type RequestRecord = {
  readonly id: string;
  readonly state: RequestState;
  /** Null for an outcome without a hold. */
  readonly keyId: string | null;
  readonly externalId: string | null;
  readonly createdAt: number;
  /** Null if nothing was granted. */
  readonly heldMicro: Micros | null;
  readonly generation: GenerationRecord | null;
  /** The stored error of a failed request. `failure` is the rejection of another region's request. */
  readonly failed?: FailedRequest | null;
  readonly failure?: Failure | null;
};
/**
 * A filter on requests: admitted from `fromMs` to before `beforeMs` (Unix ms), before the ID `after`, with
 * this `state` and `model`. Null matches any.
 */
export type RequestQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly after: string | null;
  readonly limit: number;
  readonly state: RequestState | null;
  readonly model: string | null;
  readonly externalId: string | null;
  readonly keyIds: readonly string[] | null;
  readonly states?: readonly RequestState[] | undefined;
  readonly models?: readonly string[] | undefined;
  readonly providers?: readonly string[] | undefined;
  readonly codes?: readonly string[] | undefined;
  readonly tag?: TagFilter | undefined;
};
/** `nextAfter` continues with older requests; null at the end. A page can be short. */
export type RequestPage = {
  readonly requests: readonly RequestRecord[];
  readonly nextAfter: string | null;
};

/** An open hold. Times are Unix ms. */
export type HoldRecord = {
  readonly id: string;
  readonly keyId: string;
  readonly externalId: string | null;
  readonly admittedAt: number;
  readonly grantedMicro: Micros;
  readonly expiresAt: number;
  /** Set for a hold that a client placed. */
  readonly purpose?: Purpose | null;
};
export type HoldsPage = {
  readonly holds: readonly HoldRecord[];
  readonly nextAfter: string | null;
};

/** A filter on events: from `from` to before `to` (Unix ms), after the event `after`. Null matches any. */
export type EventQuery = {
  readonly type: EventType | null;
  readonly from: number | null;
  readonly to: number | null;
  readonly limit: number;
  readonly after: string | null;
  /** Only events by these members and about them. */
  readonly memberIds?: readonly string[];
};
/**
 * Events, newest first. `dropped` counts events deleted by the log's bound, and `until` dates the newest;
 * null for none.
 */
export type EventPage = {
  readonly events: readonly EventRecord[];
  readonly nextAfter: string | null;
  readonly dropped: { readonly events: number; readonly until: number } | null;
};
