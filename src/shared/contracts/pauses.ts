import type { BudgetScope } from "../budgets.ts";
import type { RequestCredential } from "../caller.ts";
import type { Actor } from "../event.ts";
import type { Failure, Result } from "../failure.ts";
import type { PauseWithOwner, PauseSource } from "../pauses.ts";

/** A pause to create. `id` is the owner's ID in the API, or "" for the organization. */
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
    /** The latest possible expiry of an unused session. */
    readonly expiresAt?: number;
  };
};
export type PutPauseResult = PauseWithOwner & { readonly created: boolean };

/** The member who lists pauses, and the member's keys. Other members' pauses are omitted. */
export type PauseReader = { readonly memberId: string; readonly keyIds: readonly string[] };

export type PauseEndRequest = {
  readonly id: string;
  readonly source: PauseSource;
  readonly actor: Actor;
};

/** A running request that the wallet may stop. */
export type StoppableRequest = { readonly id: string; readonly called: RequestCredential };
export type StoppedRequest = { readonly id: string; readonly failure: Failure };

export type WalletPauseMethods = {
  /**
   * Pauses an owner, or changes the pause. Fails with `not_found` for an unknown owner, or with
   * `conflict` if the new end is earlier.
   */
  putPause(pause: NewPause, by?: RequestCredential): Promise<Result<PutPauseResult>>;
  /** Returns the pauses that `reader` (null: everyone) can see, oldest first. */
  pauses(reader: PauseReader | null): Promise<Result<readonly PauseWithOwner[]>>;
  /** Ends a pause. Fails with `not_found`, or with `conflict` if an operator created it. */
  endPause(ending: PauseEndRequest, by?: RequestCredential): Promise<Result<PauseWithOwner>>;
  /** Returns the requests that must stop, because of a pause, a revoked key or an ended session. */
  watch(runs: readonly StoppableRequest[]): Promise<Result<readonly StoppedRequest[]>>;
};
