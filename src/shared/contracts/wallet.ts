import type { GroupedPartResult } from "../call-groups.ts";
import type { RequestCredential, PresentedSecret } from "../caller.ts";
import type { BudgetOwner, BudgetStatus } from "../budgets.ts";
import type { Actor, EventRecord } from "../event.ts";
import type {
  FailureBatch,
  FailureQuery,
  FailureReport,
  StoredFailureQuery,
  StoredFailureReport,
} from "../failed-request.ts";
import type { Result } from "../failure.ts";
import type { ChargesPage, ChargesQuery } from "./exports.ts";
import type { Generation } from "../generation.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { AdmittedKey } from "./register.ts";
import type { KeyTerms } from "../key-terms.ts";
import type { KeyStatus, RateLimitState } from "../key-status.ts";
import type { HoldPurpose } from "../placed-hold.ts";
import type { HoldChange, PlacedHold } from "./holds.ts";
import type { EndUserPage, EndUserRecord, EndUserUpdate, PutEndUserResult } from "./end-users.ts";
import type { WalletPauseMethods } from "./pauses.ts";
import type { WalletPaymentMethods } from "./payments.ts";
import type { ReconcileOptions, Reconciliation } from "./reconciliation.ts";
import type { IdempotencyHashes } from "../idempotency.ts";
import type { BudgetsChange, MemberLimits, MemberLimitsChange } from "./settings.ts";
import type * as own from "./settings.ts";
import type { Session } from "../session.ts";
import type { Micros } from "../money.ts";
import type { Paused } from "../paused.ts";
import type { UsageStreamPage, StreamQuery } from "./usage-stream.ts";
import type { Policy, PolicyLayer, RouteCandidate } from "../policy.ts";
import type * as reports from "./reports.ts";
import type {
  EventPage,
  EventQuery,
  HoldsPage,
  LedgerPage,
  LedgerRow,
  RequestPage,
  RequestQuery,
  RequestRecord,
} from "./wallet-pages.ts";

/** A request's tokens: the prompt, and the minimum and maximum with output. */
export type RequestTokenCounts = {
  readonly prompt: number;
  readonly least: number;
  readonly most: number;
};

export type { OperatorSettings, OperatorSettingsChange } from "./settings.ts";
export type {
  EventPage,
  EventQuery,
  SettledGeneration,
  OpenHoldRecord,
  HoldsPage,
  LedgerPage,
  LedgerRow,
  RequestOutcome,
  RequestPage,
  RequestQuery,
  RequestRecord,
  RequestState,
} from "./wallet-pages.ts";

export type HoldRequest = {
  readonly id: string;
  readonly least: Micros;
  readonly most: Micros;
  /** The minimum cost for the upper bound of the prompt's tokens. Budgets require this amount. */
  readonly sure: Micros;
  /**
   * Whether the client set an output cap. If not, a hold uses at most half of the available
   * credits.
   */
  readonly hasCap: boolean;
  readonly tokens: RequestTokenCounts;
  /** The requested model, as sent and as an ID. Keys with a model list reject null. */
  readonly model: { readonly sent: string; readonly id: string } | null;
  readonly externalId: string | null;
  readonly keyId: string;
  /**
   * Whether another region sent the request. Its hold then lasts longer, and the wallet stores
   * rejections, so that late duplicates fail too.
   */
  readonly peer: boolean;
  readonly idempotency: IdempotencyHashes | null;
  readonly priceList?: string | null;
  readonly affinity?: string | null;
  /** Set for a hold that a client places. It has no model, tokens or prices. */
  readonly placed?: HoldPurpose & { readonly expiresInS: number };
  readonly candidates?: readonly RouteCandidate[];
};
/**
 * A granted hold. `tokens`: granted and left under the key's limit. `priceList`, `policies`,
 * `paused`: only for requests without a hold. `warmRoute`: the route with the cached prompt.
 * `routes`: indexes of allowed candidates. `uncovered`: indexes of candidates that credits don't
 * cover.
 */
export type HoldGrant = {
  readonly granted: Micros;
  readonly keepHours?: number;
  readonly priceList?: string;
  readonly warmRoute?: string;
  readonly policies?: readonly PolicyLayer[];
  readonly paused?: Paused;
  readonly routes?: readonly number[];
  readonly uncovered?: readonly number[];
  readonly tokens?: RateLimitState & { readonly granted: number };
  readonly tokensGranted?: number;
};
/** The admission and the hold of one request. The admission counts even if the hold fails. */
export type AdmittedHold = {
  readonly admitted: RateLimitState;
  readonly held: Result<HoldGrant>;
};

export type Settlement = {
  readonly id: string;
  /** The actual cost. The charge can't exceed the hold plus the credits that aren't held. */
  readonly cost: Micros;
  readonly generation: Generation;
  /** Whether the charge is limited to the hold despite available credits. Ignored before 1.2.0. */
  readonly isCapped?: boolean;
};
/**
 * The result of settling a hold. `unknown`: the hold doesn't exist or was rejected. `unknown` and
 * `voided` charge nothing.
 */
export type SettleResult =
  | { readonly kind: "settled"; readonly charged: Micros; readonly shortfall: Micros }
  | { readonly kind: "unknown" }
  | { readonly kind: "voided" };

/** The result of voiding a hold. `settled`: the hold was already charged. */
export type VoidResult =
  | { readonly kind: "voided" }
  | { readonly kind: "settled"; readonly charged: Micros };

export type WalletBalance = {
  readonly creditsMicro: Micros;
  readonly heldMicro: Micros;
  readonly openHolds: number;
  readonly owedMicro?: Micros;
  readonly operatorPolicy?: Policy;
};

/** A change of the balance, made once per `reference`. */
export type CreditRequest = {
  readonly amountMicro: Micros;
  readonly reference: string;
  readonly actor?: Actor;
};

/** The wallet's methods that `CallGroups` can combine. */
export type GroupableWalletMethods = Pick<
  WalletMethods,
  "hold" | "admitAndHold" | "settle" | "void"
>;
export type GroupedWalletCall = {
  readonly [K in keyof GroupableWalletMethods]: {
    readonly call: K;
    readonly args: Parameters<GroupableWalletMethods[K]>;
  };
}[keyof GroupableWalletMethods];
/** The result of one grouped call. */
export type GroupedWalletCallResult = Awaited<
  ReturnType<GroupableWalletMethods[keyof GroupableWalletMethods]>
>;

/** A wallet's figures that operators monitor. */
export type WalletHealth = {
  readonly openHolds: number;
  readonly oldestHoldMs: number | null;
  readonly isUnpublished: boolean;
  /** Whether D1's snapshot belongs to another wallet. This wallet then rejects holds. */
  readonly isInConflict: boolean;
  readonly bytes: number;
};

export type WalletKeyRecord = Pick<Key, "keyId" | "memberId" | "scope" | "rpmLimit"> & {
  readonly keyHash: string;
};

export type SessionWithSpend = {
  readonly keyId: string;
  readonly session: Session;
  readonly spentMicro: Micros;
  readonly heldMicro: Micros;
};
/** A query for sessions in order of creation, after the ID `after` ("" for the start). */
export type SessionQuery = {
  readonly owner: { readonly memberId: string | null; readonly keyId: string | null };
  readonly limit: number;
  readonly after: string;
};
export type SessionPage = {
  readonly sessions: readonly SessionWithSpend[];
  readonly nextAfter: string | null;
};
/**
 * The session to end. `isOwn` permits ending an unused session. `expiresAt` is the latest possible
 * expiry.
 */
export type SessionEndRequest = Pick<SessionQuery, "owner"> & {
  readonly id: string;
  readonly expiresAt: number;
  readonly isOwn: boolean;
  readonly actor: Actor;
};
export type KeyRevocation = { readonly keyId: string; readonly actor: Actor };
/** A key's rotation. `sessionsCut` is its number if it ends all earlier sessions, else null. */
export type KeyRotation = KeyRevocation & { readonly sessionsCut: number | null };

type OtherCalls = WalletPaymentMethods & WalletPauseMethods;

export type WalletMethods = OtherCalls & {
  /** Creates the wallet. A retry returns the first call's epoch. */
  create(orgId: string): Promise<{ readonly epoch: string }>;
  /** Admits a request at home. A rejected request doesn't count toward the rate limit. */
  admit(keyHash: string, shown?: PresentedSecret): Promise<Result<AdmittedKey>>;
  /**
   * Runs `admit` and `hold` in one transaction. If a retried call fails, its first attempt may have
   * succeeded.
   */
  admitAndHold(
    keyHash: string,
    request: HoldRequest,
    shown?: PresentedSecret,
  ): Promise<Result<AdmittedHold>>;
  /** Permanently revokes any key, even an unknown one. With `by`, records an event. */
  revokeKey(keyHash: string, revokedAt: number, by?: KeyRevocation): Promise<Result<null>>;
  keyOf(keyId: string): Promise<Result<WalletKeyRecord | null>>;
  setKeyLimit(keyHash: string, rpmLimit: number): Promise<Result<null>>;
  /** Applies a key's new limits immediately. Earlier spend counts toward them. */
  setKeyTerms(keyHash: string, terms: KeyTerms): Promise<Result<null>>;
  setKeySecrets(keyHash: string, secrets: KeySecrets, by?: KeyRotation): Promise<Result<null>>;
  /**
   * Returns a key's limits and, with `withSpend`, its spend. With `isCounted`, counts a request of
   * the session. Fails with `invalid_api_key` or `rate_limited`.
   */
  keyStanding(
    keyHash: string,
    shown?: PresentedSecret,
    withSpend?: boolean,
    isCounted?: boolean,
  ): Promise<Result<KeyStatus>>;
  /** Fails with `invalid_api_key` if the key was revoked after the request's admission. */
  hold(request: HoldRequest, keyHash?: string, shown?: PresentedSecret): Promise<Result<HoldGrant>>;
  /**
   * Places a client's hold, once per Idempotency-Key and body. With `isCaptured`, also captures it.
   * Fails with `hold_not_allowed`.
   */
  placeHold(
    request: HoldRequest,
    called: RequestCredential,
    isCaptured: boolean,
  ): Promise<Result<PlacedHold>>;
  /**
   * Extends, captures or releases a client's hold. Only the key can extend a hold. The key also
   * ends a hold that only counts toward quotas. The merchant ends all others. `called` is null for
   * the merchant. Fails with `not_found`, or with `conflict` if the hold ended differently.
   */
  changeHold(change: HoldChange, called: RequestCredential | null): Promise<Result<PlacedHold>>;
  placedHold(id: string): Promise<Result<PlacedHold>>;
  sessions(query: SessionQuery): Promise<Result<SessionPage>>;
  endSession(ending: SessionEndRequest): Promise<Result<null>>;
  /** Settles a hold. If `actor` is set, an operator settles it manually. */
  settle(settlement: Settlement, actor?: Actor): Promise<Result<SettleResult>>;
  /**
   * Releases a hold without a charge. The operator pays for the provider call `absorbed`. Versions
   * before 1.2.0 ignore this field.
   */
  void(id: string, absorbed?: Generation | null): Promise<Result<VoidResult>>;
  /**
   * Runs all calls in order, even if one throws. A call with the result `apart` didn't run. Repeat
   * it alone.
   */
  together(
    parts: readonly GroupedWalletCall[],
  ): Promise<readonly GroupedPartResult<GroupedWalletCallResult>[]>;
  budgets(owner: BudgetOwner): Promise<Result<readonly BudgetStatus[]>>;
  setBudgets(
    change: BudgetsChange,
    by?: RequestCredential,
  ): Promise<Result<readonly BudgetStatus[]>>;
  credit(request: CreditRequest): Promise<Result<WalletBalance>>;
  balance(): Promise<Result<WalletBalance>>;
  /** Deletes an unused wallet. Returns false if it was used. */
  discard(): Promise<boolean>;
  configure(change: own.OperatorSettingsChange): Promise<Result<own.OperatorSettings>>;
  putEndUser(
    externalId: string,
    change: EndUserUpdate,
    by?: RequestCredential,
  ): Promise<Result<PutEndUserResult>>;
  patchEndUser(
    externalId: string,
    change: EndUserUpdate,
    by?: RequestCredential,
  ): Promise<Result<EndUserRecord>>;
  readEndUser(externalId: string): Promise<Result<EndUserRecord>>;
  listEndUsers(limit: number, offset: number, after?: string): Promise<Result<EndUserPage>>;
  deleteEndUser(
    externalId: string,
    by?: RequestCredential,
  ): Promise<Result<{ readonly externalId: string }>>;
  /** Deletes some end users of a closed organization. Repeat it until `more` is false. */
  eraseEndUsers(): Promise<Result<{ readonly more: boolean }>>;
  readSettings(): Promise<Result<own.SettingsWithBudgets>>;
  memberLimits(memberId: string): Promise<Result<MemberLimits>>;
  setMemberLimits(
    memberId: string,
    change: MemberLimitsChange & { readonly actor: Actor },
    by?: RequestCredential,
  ): Promise<Result<MemberLimits>>;
  /** Ends the pauses and budgets of a removed member. */
  forgetMember(memberId: string): Promise<Result<null>>;
  setOperatorPolicy(policy: Policy | null, actor: Actor): Promise<Result<Policy | null>>;
  patchSettings(
    change: own.SettingsChange,
    by?: RequestCredential,
    actor?: Actor,
  ): Promise<Result<own.SettingsWithBudgets>>;
  ledger(afterSeq: number, limit: number): Promise<Result<LedgerPage>>;
  newestLedger(beforeSeq: number, limit: number): Promise<Result<readonly LedgerRow[]>>;
  request(id: string): Promise<Result<RequestRecord>>;
  requests(query: RequestQuery): Promise<Result<RequestPage>>;
  /**
   * Counts failed requests and stores the newest. Never retried, because counts must not double.
   */
  noteFailed(batch: FailureBatch): Promise<Result<null>>;
  failures(query: FailureQuery): Promise<Result<FailureReport>>;
  keptFailures(query: StoredFailureQuery): Promise<Result<StoredFailureReport>>;
  holds(query: {
    readonly limit: number;
    readonly after: string | null;
    readonly keyIds: readonly string[] | null;
  }): Promise<Result<HoldsPage>>;
  usageOfRows(query: reports.RequestSumsQuery): Promise<Result<reports.RequestSumsReport>>;
  usageByMember(query: reports.RequestSumsQuery): Promise<Result<reports.RequestSumsReport>>;
  /**
   * Returns the calls of each provider since `fromMs` (Unix ms). Release 1.1.0 lacks this method.
   */
  providerCalls(fromMs: number): Promise<Result<reports.ProviderCallsReport>>;
  costs(query: reports.CostQuery): Promise<Result<reports.ProviderCostReport>>;
  /**
   * Returns the usage of the UTC days `from` to `to` (YYYY-MM-DD): a page if `page` is set,
   * otherwise up to 10,000 groups.
   */
  usage(
    from: string,
    to: string,
    groupBy: reports.UsageGroupBy,
    page?: reports.UsagePage,
  ): Promise<Result<reports.UsageReport>>;
  usageStream(query: StreamQuery): Promise<Result<UsageStreamPage>>;
  chargesOfDay(query: ChargesQuery): Promise<Result<ChargesPage>>;
  alerts(limit: number, offset: number): Promise<Result<reports.AlertPage>>;
  /** Returns a page of events. Fails with `invalid_request` for an unknown `after`. */
  events(query: EventQuery): Promise<Result<EventPage>>;
  eventsSince(sinceMs: number, limit: number): Promise<Result<readonly EventRecord[]>>;
  /** Moves waiting events from D1 to the log. Never throws. */
  takeEvents(): Promise<void>;
  /** Publishes the state to D1, runs overdue work and restores the alarm. */
  poke(): Promise<Result<WalletHealth>>;
  /**
   * Compares ledger, balance, holds, usage and D1, and logs differences. Fails with `conflict` if
   * rows are deleted faster than read.
   */
  reconcile(request?: ReconcileOptions): Promise<Result<Reconciliation>>;
  rebuild(orgId: string, actor?: Actor): Promise<Result<WalletBalance>>;
};
