import type { BudgetScope } from "../budgets.ts";
import type { RequestCredential } from "../caller.ts";
import type { Actor } from "../event.ts";
import type { Failure, Result } from "../failure.ts";
import type { PauseWithOwner, PauseSource } from "../pauses.ts";

/** A pause to create. `id` is the owner's ID, "" for the organization, or an external ID. */
export type NewPause = {
  readonly scope: BudgetScope;
  readonly id: string;
  readonly source: PauseSource;
  readonly reason: string;
  readonly until: number | null;
  readonly stopRunning: boolean;
  readonly actor: Actor;
  readonly session?: {
    readonly owner: { readonly memberId: string | null; readonly keyId: string | null };
    readonly isOwn: boolean;
    /** The latest end of a session that was never used. */
    readonly expiresAt?: number;
  };
};
export type PutPause = PauseWithOwner & { readonly created: boolean };

/** The member that reads pauses, with its keys. It gets the pauses that stop its own requests. */
export type PauseReader = { readonly memberId: string; readonly keyIds: readonly string[] };

export type PauseEnding = {
  readonly id: string;
  readonly source: PauseSource;
  readonly actor: Actor;
};

/** A running request. Its hold has the same ID. */
export type WatchedRun = { readonly id: string; readonly called: RequestCredential };
export type StoppedRun = { readonly id: string; readonly failure: Failure };

export type PauseCalls = {
  /**
   * Pauses an owner, or changes its pause. Fails with `not_found` for an unknown owner, and with
   * `conflict` if the pause would end earlier.
   */
  putPause(pause: NewPause, by?: RequestCredential): Promise<Result<PutPause>>;
  /** Returns pauses, oldest first. Returns all if `reader` is null. */
  pauses(reader: PauseReader | null): Promise<Result<readonly PauseWithOwner[]>>;
  /** Ends a pause. Fails with `not_found`, or with `conflict` for an operator's pause. */
  endPause(ending: PauseEnding, by?: RequestCredential): Promise<Result<PauseWithOwner>>;
  /** Returns the requests that a pause, a revoked key or an ended session stops. */
  watch(runs: readonly WatchedRun[]): Promise<Result<readonly StoppedRun[]>>;
};
