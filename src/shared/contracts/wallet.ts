import type { PartAnswer } from "../call-groups.ts";
import type { RequestCredential, PresentedSecret } from "../caller.ts";
import type { Budget, BudgetOwner, BudgetStatus } from "../budgets.ts";
import type { Actor, EventRecord } from "../event.ts";
import type {
  FailedBatch,
  FailureQuery,
  FailureReport,
  KeptFailureQuery,
  KeptFailureReport,
} from "../failed-request.ts";
import type { Result } from "../failure.ts";
import type { ChargesPage, ChargesQuery } from "./exports.ts";
import type { Generation } from "../generation.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { AdmittedKey } from "./register.ts";
import type { KeyStatus, KeyTerms, RateState } from "../key-terms.ts";
import type { Purpose } from "../placed-hold.ts";
import type { HoldChange, PlacedHold } from "./holds.ts";
import type { WalletPaymentCalls } from "./payments.ts";
import type { ReconcileAsk, Reconciliation } from "./reconciliation.ts";
import type { Idempotency } from "../idempotency.ts";
import type { BudgetsChange, MemberLimits, MemberLimitsChange } from "./limits.ts";
import type * as own from "./settings.ts";
import type { Session } from "../session.ts";
import type { Micros } from "../money.ts";
import type { StreamPage, StreamQuery } from "./usage-stream.ts";
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

/** The estimated prompt tokens, with the minimum and maximum output tokens. */
export type TokenAsk = {
  readonly prompt: number;
  readonly least: number;
  readonly most: number;
};

export type { Configuration, ConfigurationChange } from "./settings.ts";
export type {
  EventPage,
  EventQuery,
  GenerationRecord,
  HoldRecord,
  HoldsPage,
  LedgerPage,
  LedgerRow,
  RequestPage,
  RequestQuery,
  RequestRecord,
  RequestState,
} from "./wallet-pages.ts";

export type HoldRequest = {
  /** `req_` and 24 characters, including the time. Repeating the ID and content returns the same response. */
  readonly id: string;
  readonly least: Micros;
  readonly most: Micros;
  /** The minimum for an upper bound of the prompt, used where a budget must never be exceeded. */
  readonly sure: Micros;
  /** Whether the client set an output cap. If not, the hold takes at most half of the available amount. */
  readonly hasCap: boolean;
  /** Tokens for a key's token limit, by an upper bound of the prompt. */
  readonly tokens: TokenAsk;
  /**
   * The model's name in the request and its ID. Null from a region that sends none; then keys with a model
   * list reject it.
   */
  readonly model: { readonly sent: string; readonly id: string } | null;
  readonly externalId: string | null;
  readonly keyId: string;
  /** Whether another region sent it. Its hold lives longer, and a rejection is stored for late duplicates. */
  readonly peer: boolean;
  readonly idempotency: Idempotency | null;
  /** The price list used for the amounts; absent or null for none. */
  readonly priceList?: string | null;
  /** The hash of the conversation, if a route may have its prompt cached. */
  readonly affinity?: string | null;
  /** Set for a hold placed by a client. Models, tokens and prices don't apply. */
  readonly placed?: Purpose & { readonly expiresInS: number };
  readonly candidates?: readonly RouteCandidate[];
};
/**
 * A granted hold. `tokens`: granted and remaining tokens of the key's limit. `keepHours`: hours to store the
 * response. `priceList` and `policies`: set if nothing was held. `warmRoute`: the route with a cached prompt,
 * if not the first. `routes`: indexes of the allowed candidates.
 */
export type HoldGrant = {
  readonly granted: Micros;
  readonly keepHours?: number;
  readonly priceList?: string;
  readonly warmRoute?: string;
  readonly policies?: readonly PolicyLayer[];
  readonly routes?: readonly number[];
  readonly tokens?: RateState & { readonly granted: number };
  /** Tokens granted by token budgets, for a key without a token limit. */
  readonly tokensGranted?: number;
};
/** An admission and its hold. The admission counts even if the hold fails. */
export type AdmittedHold = {
  readonly admitted: RateState;
  readonly held: Result<HoldGrant>;
};

export type Settlement = {
  readonly id: string;
  /** The actual cost. At most the hold and the available amount are charged. */
  readonly cost: Micros;
  readonly generation: Generation;
};
/** The result of settling. `unknown`: no such hold. `voided`: released earlier. Neither charges anything. */
export type SettleAnswer =
  | { readonly kind: "settled"; readonly charged: Micros; readonly shortfall: Micros }
  | { readonly kind: "unknown" }
  | { readonly kind: "voided" };

/** The result of voiding. `settled`: it was too late, and the charge remains. */
export type VoidAnswer =
  | { readonly kind: "voided" }
  | { readonly kind: "settled"; readonly charged: Micros };

export type BalanceAnswer = {
  readonly creditsMicro: Micros;
  readonly heldMicro: Micros;
  readonly openHolds: number;
  readonly owedMicro?: Micros;
  readonly operatorPolicy?: Policy;
};

/** A credit. Without `actor`, the system credits it. */
export type CreditRequest = {
  readonly amountMicro: Micros;
  readonly reference: string;
  readonly actor?: Actor;
};

/** Changes to an end user. Absent fields keep their value, or get the default. */
export type EndUserChange = {
  readonly monthlyQuotaMicro?: Micros | null | undefined;
  readonly dailyQuotaMicro?: Micros | null | undefined;
  /** From 0 to 1. */
  readonly alertThreshold?: number | undefined;
  readonly budgets?: readonly Budget[] | undefined;
};
export type EndUserRecord = {
  readonly id: string;
  readonly externalId: string;
  readonly monthlyQuotaMicro: Micros | null;
  readonly dailyQuotaMicro: Micros | null;
  readonly alertThreshold: number;
  readonly monthlySpendMicro: Micros;
  readonly dailySpendMicro: Micros;
  readonly budgets: readonly BudgetStatus[];
  readonly createdAt: number;
};
export type PutEndUserAnswer = { readonly created: boolean; readonly endUser: EndUserRecord };
export type EndUserPage = {
  readonly endUsers: readonly EndUserRecord[];
  readonly total: number;
  readonly nextAfter: string | null;
};
export type GroupedCalls = Pick<WalletCalls, "hold" | "admitAndHold" | "settle" | "void">;
export type WalletPart = {
  readonly [K in keyof GroupedCalls]: {
    readonly call: K;
    readonly args: Parameters<GroupedCalls[K]>;
  };
}[keyof GroupedCalls];
export type PartResult = Awaited<ReturnType<GroupedCalls[keyof GroupedCalls]>>;

/** A wallet's state for monitoring. Times are ms, sizes bytes. */
export type Vitals = {
  readonly openHolds: number;
  readonly oldestHoldMs: number | null;
  readonly isUnpublished: boolean;
  /** Whether the database belongs to another wallet, so this one rejects holds. */
  readonly isInConflict: boolean;
  readonly bytes: number;
};

export type UsedKey = Pick<Key, "keyId" | "memberId" | "scope" | "rpmLimit"> & {
  readonly keyHash: string;
};

/** An active session that was used. Amounts are micro-credits. */
export type UsedSession = {
  readonly keyId: string;
  readonly session: Session;
  readonly spentMicro: Micros;
  readonly heldMicro: Micros;
};
/**
 * A page of sessions in creation order. `owner` selects all, a member's or one key's. `after` is the last ID,
 * or "".
 */
export type SessionQuery = {
  readonly owner: { readonly memberId: string | null; readonly keyId: string | null };
  readonly limit: number;
  readonly after: string;
};
export type SessionPage = {
  readonly sessions: readonly UsedSession[];
  readonly nextAfter: string | null;
};
/**
 * A request to end a session. `isOwn` allows ending an unused one. `expiresAt` is its latest possible end.
 */
export type SessionEnding = Pick<SessionQuery, "owner"> & {
  readonly id: string;
  readonly expiresAt: number;
  readonly isOwn: boolean;
  readonly actor: Actor;
};
export type KeyEnding = { readonly keyId: string; readonly actor: Actor };
export type KeyRotation = KeyEnding & { readonly sessionsCut: number | null };

export type WalletCalls = WalletPaymentCalls & {
  /** Creates the organization's wallet. Repeats return the same epoch. */
  create(orgId: string): Promise<{ readonly epoch: string }>;
  /**
   * Admits a request at the key's home. Failures (`invalid_api_key`, `rate_limited`, storage) take no slot.
   */
  admit(keyHash: string, shown?: PresentedSecret): Promise<Result<AdmittedKey>>;
  /**
   * Runs `admit` and `hold` in one transaction. A retry returns the first response. If a retry is rejected,
   * the first attempt may have succeeded.
   */
  admitAndHold(
    keyHash: string,
    request: HoldRequest,
    shown?: PresentedSecret,
  ): Promise<Result<AdmittedHold>>;
  /**
   * Revokes a key permanently, even if it was never seen. Repeats change nothing. `by` is recorded as an
   * event.
   */
  revokeKey(keyHash: string, revokedAt: number, by?: KeyEnding): Promise<Result<null>>;
  /** Returns a key by ID if this wallet has admitted it, else null. */
  keyOf(keyId: string): Promise<Result<UsedKey | null>>;
  setKeyLimit(keyHash: string, rpmLimit: number): Promise<Result<null>>;
  /** Applies a key's new terms immediately. Earlier spend counts. */
  setKeyTerms(keyHash: string, terms: KeyTerms): Promise<Result<null>>;
  setKeySecrets(keyHash: string, secrets: KeySecrets, by?: KeyRotation): Promise<Result<null>>;
  /**
   * Returns a key's limits, and on request its spend, without taking a slot. Fails with `invalid_api_key`.
   */
  keyStanding(
    keyHash: string,
    shown?: PresentedSecret,
    withSpend?: boolean,
  ): Promise<Result<KeyStatus>>;
  /** Places the hold of an admitted key. Fails with `invalid_api_key` if the key was revoked meanwhile. */
  hold(request: HoldRequest, keyHash?: string, shown?: PresentedSecret): Promise<Result<HoldGrant>>;
  /**
   * Places a client's own hold. The same Idempotency-Key and body return the first. `isCaptured` also
   * captures it. Fails with `hold_not_allowed`.
   */
  placeHold(
    request: HoldRequest,
    called: RequestCredential,
    isCaptured: boolean,
  ): Promise<Result<PlacedHold>>;
  /**
   * Captures, releases or extends a client's hold. Repeats return the first result. Fails with `not_found`
   * for another party, or `conflict` if the hold ended differently. A null `called` is a merchant, which can
   * also end holds of a suspended organization.
   */
  changeHold(change: HoldChange, called: RequestCredential | null): Promise<Result<PlacedHold>>;
  placedHold(id: string): Promise<Result<PlacedHold>>;
  sessions(query: SessionQuery): Promise<Result<SessionPage>>;
  /** Ends a session permanently. Fails with `not_found` for another caller's session. */
  endSession(ending: SessionEnding): Promise<Result<null>>;
  /** Settles a hold. `actor` is an operator who settles manually, which is recorded as an event. */
  settle(settlement: Settlement, actor?: Actor): Promise<Result<SettleAnswer>>;
  void(id: string): Promise<Result<VoidAnswer>>;
  /**
   * Runs grouped calls in order in one transaction. If one throws, the others still apply. `apart` means that
   * one needs a key lookup and did nothing.
   */
  together(parts: readonly WalletPart[]): Promise<readonly PartAnswer<PartResult>[]>;
  budgets(owner: BudgetOwner): Promise<Result<readonly BudgetStatus[]>>;
  /** Replaces an owner's budgets. A budget with the same ID keeps its count. */
  setBudgets(
    change: BudgetsChange,
    by?: RequestCredential,
  ): Promise<Result<readonly BudgetStatus[]>>;
  credit(request: CreditRequest): Promise<Result<BalanceAnswer>>;
  balance(): Promise<Result<BalanceAnswer>>;
  discard(): Promise<boolean>;
  configure(change: own.ConfigurationChange): Promise<Result<own.Configuration>>;
  /** Changes made by the organization. They fail if it is suspended or the calling key was revoked. */
  putEndUser(
    externalId: string,
    change: EndUserChange,
    by?: RequestCredential,
  ): Promise<Result<PutEndUserAnswer>>;
  patchEndUser(
    externalId: string,
    change: EndUserChange,
    by?: RequestCredential,
  ): Promise<Result<EndUserRecord>>;
  readEndUser(externalId: string): Promise<Result<EndUserRecord>>;
  listEndUsers(limit: number, offset: number, after?: string): Promise<Result<EndUserPage>>;
  deleteEndUser(
    externalId: string,
    by?: RequestCredential,
  ): Promise<Result<{ readonly externalId: string }>>;
  readSettings(): Promise<Result<own.SettingsAnswer>>;
  memberLimits(memberId: string): Promise<Result<MemberLimits>>;
  setMemberLimits(
    memberId: string,
    change: MemberLimitsChange & { readonly actor: Actor },
    by?: RequestCredential,
  ): Promise<Result<MemberLimits>>;
  setOperatorPolicy(policy: Policy | null, actor: Actor): Promise<Result<Policy | null>>;
  patchSettings(
    change: own.SettingsChange,
    by?: RequestCredential,
    actor?: Actor,
  ): Promise<Result<own.SettingsAnswer>>;
  /** Returns ledger rows after `afterSeq`, in order. `nextAfterSeq` continues. */
  ledger(afterSeq: number, limit: number): Promise<Result<LedgerPage>>;
  newestLedger(beforeSeq: number, limit: number): Promise<Result<readonly LedgerRow[]>>;
  request(id: string): Promise<Result<RequestRecord>>;
  requests(query: RequestQuery): Promise<Result<RequestPage>>;
  /** Counts failed requests and stores the newest. Must not be repeated, because it would count twice. */
  noteFailed(batch: FailedBatch): Promise<Result<null>>;
  failures(query: FailureQuery): Promise<Result<FailureReport>>;
  keptFailures(query: KeptFailureQuery): Promise<Result<KeptFailureReport>>;
  /** Returns open holds, oldest first. Null `keyIds` means all keys. */
  holds(query: {
    readonly limit: number;
    readonly after: string | null;
    readonly keyIds: readonly string[] | null;
  }): Promise<Result<HoldsPage>>;
  /** Returns usage from request records: hourly, by two dimensions, or filtered. */
  usageOfRows(query: reports.RowsQuery): Promise<Result<reports.RowsReport>>;
  usageByMember(query: reports.RowsQuery): Promise<Result<reports.RowsReport>>;
  costs(query: reports.CostQuery): Promise<Result<reports.CostReport>>;
  /**
   * Returns usage from the UTC day `from` to `to` (YYYY-MM-DD), inclusive; by default the first 10,000
   * groups.
   */
  usage(
    from: string,
    to: string,
    groupBy: reports.UsageGroupBy,
    page?: reports.UsagePage,
  ): Promise<Result<reports.UsageReport>>;
  usageStream(query: StreamQuery): Promise<Result<StreamPage>>;
  chargesOfDay(query: ChargesQuery): Promise<Result<ChargesPage>>;
  alerts(limit: number, offset: number): Promise<Result<reports.AlertPage>>;
  /** Returns a page of events. Fails with `invalid_request` for an unknown `after`. */
  events(query: EventQuery): Promise<Result<EventPage>>;
  /** Returns the events since a time (Unix ms), oldest first, for a replay. */
  eventsSince(sinceMs: number, limit: number): Promise<Result<readonly EventRecord[]>>;
  /** Moves waiting events from the database to the log. Never throws. */
  takeEvents(): Promise<void>;
  /**
   * Publishes, performs due work, restores the alarm, and returns the wallet's state. Called by the hourly
   * cron.
   */
  poke(): Promise<Result<Vitals>>;
  /**
   * Compares ledger, balance, holds, usage and database in slices, and logs differences as errors. Fails with
   * `conflict` if rows are deleted faster than it reads.
   */
  reconcile(request?: ReconcileAsk): Promise<Result<Reconciliation>>;
  /** Restores this wallet from the database, after the old one was lost. */
  rebuild(orgId: string, actor?: Actor): Promise<Result<BalanceAnswer>>;
};
