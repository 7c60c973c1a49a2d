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

/** The estimated prompt tokens, and the minimum and maximum output tokens. */
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

/** A hold request to an organization's wallet. */
export type HoldRequest = {
  /** `req_` and 24 characters, including the time. The same ID and content get the same response. */
  readonly id: string;
  readonly least: Micros;
  readonly most: Micros;
  /** The minimum by the prompt's upper bound, required where a budget must not be passed. */
  readonly sure: Micros;
  /** Whether the client set an output cap. Otherwise it gets at most half of what is free. */
  readonly hasCap: boolean;
  /** By the prompt's bound, for a key's token limit. */
  readonly tokens: TokenAsk;
  /**
   * The name sent and the model it resolved to; null if a peer sends none, which a key with a model list
   * rejects.
   */
  readonly model: { readonly sent: string; readonly id: string } | null;
  readonly externalId: string | null;
  readonly keyId: string;
  /** A peer's request: it lives longer, and a refusal is remembered so that a late duplicate stays refused. */
  readonly peer: boolean;
  /** The Idempotency-Key; null without one. */
  readonly idempotency: Idempotency | null;
  /** The organization's price list used for the amounts; absent or null for none. */
  readonly priceList?: string | null;
  /** The hash of its conversation, if the choice of a route can find a prompt cache. */
  readonly affinity?: string | null;
  /** Set for a hold that a client places itself. Models, tokens and prices don't apply to it. */
  readonly placed?: Purpose & { readonly expiresInS: number };
  /** Its routes, where the organization or the request may have a policy. */
  readonly candidates?: readonly RouteCandidate[];
};
/**
 * The grant. `tokens`: granted and remaining tokens of the key's limit. `keepHours`: response storage, absent
 * if disabled. `priceList` and `policies`: set if nothing was held. `warmRoute`: the route with the
 * conversation's prompt in its cache, if it isn't the first one. `routes`: the indexes of the allowed
 * candidates, if candidates were sent.
 */
export type HoldGrant = {
  readonly granted: Micros;
  readonly keepHours?: number;
  readonly priceList?: string;
  readonly warmRoute?: string;
  readonly policies?: readonly PolicyLayer[];
  readonly routes?: readonly number[];
  readonly tokens?: RateState & { readonly granted: number };
  /** Tokens granted by budgets in tokens, of a key without a token limit. */
  readonly tokensGranted?: number;
};
/** An admission and its hold. The admission counts even if the hold fails. */
export type AdmittedHold = {
  readonly admitted: RateState;
  readonly held: Result<HoldGrant>;
};

export type Settlement = {
  readonly id: string;
  /** The actual cost. The wallet charges at most the hold plus the free amount. */
  readonly cost: Micros;
  readonly generation: Generation;
};
/** `unknown`: no such hold. `voided`: released earlier. Neither charged anything. */
export type SettleAnswer =
  | { readonly kind: "settled"; readonly charged: Micros; readonly shortfall: Micros }
  | { readonly kind: "unknown" }
  | { readonly kind: "voided" };

/** `settled`: too late, the charge stands. */
export type VoidAnswer =
  | { readonly kind: "voided" }
  | { readonly kind: "settled"; readonly charged: Micros };

export type BalanceAnswer = {
  readonly creditsMicro: Micros;
  readonly heldMicro: Micros;
  readonly openHolds: number;
  /** Unpaid debt from reversed payments; absent for none. */
  readonly owedMicro?: Micros;
  /** The operator's policy for the organization; absent without one. */
  readonly operatorPolicy?: Policy;
};

/** A credit. `actor` defaults to the system. */
export type CreditRequest = {
  readonly amountMicro: Micros;
  readonly reference: string;
  readonly actor?: Actor;
};

/** Changes to an end user. Absent fields keep their value or take the default. */
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
/** The calls of the paid path, which can be grouped. */
export type GroupedCalls = Pick<WalletCalls, "hold" | "admitAndHold" | "settle" | "void">;
/** A grouped call and its arguments. */
export type WalletPart = {
  readonly [K in keyof GroupedCalls]: {
    readonly call: K;
    readonly args: Parameters<GroupedCalls[K]>;
  };
}[keyof GroupedCalls];
export type PartResult = Awaited<ReturnType<GroupedCalls[keyof GroupedCalls]>>;

/** The wallet's state for monitoring. Times are ms, sizes bytes. */
export type Vitals = {
  readonly openHolds: number;
  /** Age of the oldest open hold; null without any. */
  readonly oldestHoldMs: number | null;
  readonly isUnpublished: boolean;
  /** Whether the database belongs to another wallet, so holds are rejected. */
  readonly isInConflict: boolean;
  readonly bytes: number;
};

/** A key that was admitted, without fields that only the database has. */
export type UsedKey = Pick<Key, "keyId" | "memberId" | "scope" | "rpmLimit"> & {
  readonly keyHash: string;
};

/** An active session that was used, in order of minting. Amounts are micro-credits. */
export type UsedSession = {
  readonly keyId: string;
  readonly session: Session;
  readonly spentMicro: Micros;
  readonly heldMicro: Micros;
};
/** `owner`: all sessions, those of a member's keys or of one key. `after` is the last ID, or "". */
export type SessionQuery = {
  readonly owner: { readonly memberId: string | null; readonly keyId: string | null };
  readonly limit: number;
  readonly after: string;
};
export type SessionPage = {
  readonly sessions: readonly UsedSession[];
  readonly nextAfter: string | null;
};
/** The caller who ends a session. `isOwn`: also an unused one. `expiresAt` is its latest end. */
export type SessionEnding = Pick<SessionQuery, "owner"> & {
  readonly id: string;
  readonly expiresAt: number;
  readonly isOwn: boolean;
  readonly actor: Actor;
};
export type KeyEnding = { readonly keyId: string; readonly actor: Actor };
export type KeyRotation = KeyEnding & { readonly sessionsCut: number | null };

/** The calls of a wallet. */
export type WalletCalls = WalletPaymentCalls & {
  /** Creates the wallet of an organization. Repeats return the same epoch. */
  create(orgId: string): Promise<{ readonly epoch: string }>;
  /**
   * Takes a slot in a key's minute at its home. Returns `invalid_api_key`, `rate_limited` or our own failure,
   * taking nothing.
   */
  admit(keyHash: string, shown?: PresentedSecret): Promise<Result<AdmittedKey>>;
  /**
   * Runs `admit` and `hold` in one transaction. A retry takes nothing and gets the first response. A rejected
   * retry says nothing about the first attempt.
   */
  admitAndHold(
    keyHash: string,
    request: HoldRequest,
    shown?: PresentedSecret,
  ): Promise<Result<AdmittedHold>>;
  /**
   * Revokes a key permanently and durably, even if it was never seen. Repeats change nothing. `by` is
   * recorded in the log.
   */
  revokeKey(keyHash: string, revokedAt: number, by?: KeyEnding): Promise<Result<null>>;
  /** Returns a key by ID if it was ever admitted here, else null. */
  keyOf(keyId: string): Promise<Result<UsedKey | null>>;
  setKeyLimit(keyHash: string, rpmLimit: number): Promise<Result<null>>;
  /** Applies a key's new terms immediately, including earlier spend. */
  setKeyTerms(keyHash: string, terms: KeyTerms): Promise<Result<null>>;
  /**
   * Applies a key's secrets immediately. `by` names the rotation and, if earlier sessions end, its number.
   */
  setKeySecrets(keyHash: string, secrets: KeySecrets, by?: KeyRotation): Promise<Result<null>>;
  /**
   * Returns a key's limits, and its spend on request, without taking a slot. Fails with `invalid_api_key` like
   * `admit`.
   */
  keyStanding(
    keyHash: string,
    shown?: PresentedSecret,
    withSpend?: boolean,
  ): Promise<Result<KeyStatus>>;
  /**
   * Holds for an admitted key. Returns `invalid_api_key` if it was revoked since, for example while reading a
   * large body.
   */
  hold(request: HoldRequest, keyHash?: string, shown?: PresentedSecret): Promise<Result<HoldGrant>>;
  /**
   * Holds for something other than a model call. A retry with the same Idempotency-Key and body returns the
   * first hold. `isCaptured` captures it in the same transaction. Returns `hold_not_allowed` without
   * permission.
   */
  placeHold(
    request: HoldRequest,
    called: RequestCredential,
    isCaptured: boolean,
  ): Promise<Result<PlacedHold>>;
  /**
   * Captures, releases or extends a placed hold. A repeat returns the first result. Returns `not_found` for
   * another party, `conflict` if the hold ended otherwise. `called` is the key, null for a merchant, which can
   * also end holds of a suspended organization.
   */
  changeHold(change: HoldChange, called: RequestCredential | null): Promise<Result<PlacedHold>>;
  placedHold(id: string): Promise<Result<PlacedHold>>;
  sessions(query: SessionQuery): Promise<Result<SessionPage>>;
  /** Ends a session permanently and durably. Returns `not_found` for a session of others. */
  endSession(ending: SessionEnding): Promise<Result<null>>;
  /** Settles a hold. `actor` is an operator who settles by hand, which is recorded as an event. */
  settle(settlement: Settlement, actor?: Actor): Promise<Result<SettleAnswer>>;
  void(id: string): Promise<Result<VoidAnswer>>;
  /**
   * Runs several grouped calls in one transaction, in order. One that throws doesn't affect others. `apart`:
   * it needs a key lookup, so nothing was done.
   */
  together(parts: readonly WalletPart[]): Promise<readonly PartAnswer<PartResult>[]>;
  /** Returns the budgets of an organization, member, key, session or end user, with their counts now. */
  budgets(owner: BudgetOwner): Promise<Result<readonly BudgetStatus[]>>;
  /** Replaces an owner's budgets from this transaction on. An entry with the same ID keeps its count. */
  setBudgets(
    change: BudgetsChange,
    by?: RequestCredential,
  ): Promise<Result<readonly BudgetStatus[]>>;
  credit(request: CreditRequest): Promise<Result<BalanceAnswer>>;
  balance(): Promise<Result<BalanceAnswer>>;
  discard(): Promise<boolean>;
  configure(change: own.ConfigurationChange): Promise<Result<own.Configuration>>;
  /**
   * Changes by the organization. They are rejected while it is suspended or after the calling key was
   * revoked.
   */
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
  /** Changes a member's policy and budgets, for all its keys from this transaction on. */
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
  /** Returns rows with `seq > afterSeq` in order. `nextAfterSeq` continues. */
  ledger(afterSeq: number, limit: number): Promise<Result<LedgerPage>>;
  newestLedger(beforeSeq: number, limit: number): Promise<Result<readonly LedgerRow[]>>;
  /** Returns a request by its `req_` ID, whatever its state. */
  request(id: string): Promise<Result<RequestRecord>>;
  requests(asked: RequestQuery): Promise<Result<RequestPage>>;
  /** Stores the newest failed requests and counts all. Not repeatable, because it would count twice. */
  noteFailed(batch: FailedBatch): Promise<Result<null>>;
  failures(asked: FailureQuery): Promise<Result<FailureReport>>;
  /** Returns stored failures, which have dimensions that the counts lack. */
  keptFailures(asked: KeptFailureQuery): Promise<Result<KeptFailureReport>>;
  /** Returns open holds, oldest first. `keyIds` null means all keys. */
  holds(asked: {
    readonly limit: number;
    readonly after: string | null;
    readonly keyIds: readonly string[] | null;
  }): Promise<Result<HoldsPage>>;
  /** Returns usage from request records: by hour, by two dimensions or filtered. */
  usageOfRows(asked: reports.RowsQuery): Promise<Result<reports.RowsReport>>;
  usageByMember(asked: reports.RowsQuery): Promise<Result<reports.RowsReport>>;
  costs(asked: reports.CostQuery): Promise<Result<reports.CostReport>>;
  /**
   * Returns usage of the UTC days `from` to `to` (YYYY-MM-DD, inclusive), by default the first 10,000 groups.
   */
  usage(
    from: string,
    to: string,
    groupBy: reports.UsageGroupBy,
    page?: reports.UsagePage,
  ): Promise<Result<reports.UsageReport>>;
  /** Returns ledger rows after a position, oldest first, with their requests. */
  usageStream(asked: StreamQuery): Promise<Result<StreamPage>>;
  /** Returns a page of a day's charges and credits by ledger time. */
  chargesOfDay(asked: ChargesQuery): Promise<Result<ChargesPage>>;
  alerts(limit: number, offset: number): Promise<Result<reports.AlertPage>>;
  /** Returns a page of the log, or `invalid_request` for an unknown `after`. */
  events(query: EventQuery): Promise<Result<EventPage>>;
  /** Returns events since a time (Unix ms), oldest first, for a replay. */
  eventsSince(sinceMs: number, limit: number): Promise<Result<readonly EventRecord[]>>;
  /** Moves waiting events from the database into the log. Never throws. */
  takeEvents(): Promise<void>;
  /** Publishes, does due work, restores the alarm and returns the state. Called by the hourly cron. */
  poke(): Promise<Result<Vitals>>;
  /**
   * Compares ledger, balance, holds, usage and database in slices and logs differences as errors. Returns
   * `conflict` if old rows are deleted faster than it reads.
   */
  reconcile(asked?: ReconcileAsk): Promise<Result<Reconciliation>>;
  /** Restores this wallet from the database after the old one was lost. */
  rebuild(orgId: string, actor?: Actor): Promise<Result<BalanceAnswer>>;
};
