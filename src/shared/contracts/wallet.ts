import type { PartAnswer } from "../call-groups.ts";
import type { RequestCredential, PresentedSecret } from "../caller.ts";
import type { Actor, EventRecord, EventType } from "../event.ts";
import type {
  FailedBatch,
  FailedRequest,
  FailureQuery,
  FailureReport,
  KeptFailureQuery,
  KeptFailureReport,
} from "../failed-request.ts";
import type { Failure, Result } from "../failure.ts";
import type { Generation } from "../generation.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { AdmittedKey } from "./register.ts";
import type { KeyStatus, KeyTerms, RateState } from "../key-terms.ts";
import type { WalletPaymentCalls } from "./payments.ts";
import type { ReconcileAsk, Reconciliation } from "./reconciliation.ts";
import type { Idempotency } from "../idempotency.ts";
import type * as own from "./settings.ts";
import type { Session } from "../session.ts";
import type { Micros } from "../money.ts";
import type * as reports from "./reports.ts";

/** What a request may come to: its prompt as estimated, with the least and the most output that it may have. */
export type TokenAsk = {
  readonly prompt: number;
  readonly least: number;
  readonly most: number;
};

export type { Configuration, ConfigurationChange } from "./settings.ts";

/**
 * What the wallet's Durable Object answers: plain values, shared by every caller. The object is
 * named by the organization's id.
 */
export type HoldRequest = {
  /** `req_` + 24; carries its minting time. Same id and content: same answer. */
  readonly id: string;
  readonly least: Micros;
  readonly most: Micros;
  /** The least by the prompt's hard bound: at least this where a budget must not be passed. */
  readonly sure: Micros;
  /** Whether the client bounds its output; otherwise it is granted half of what is free at most. */
  readonly hasCap: boolean;
  /** By the prompt's bound, for a key's token limit. */
  readonly tokens: TokenAsk;
  /** The name that was sent and the id it came to; null where a peer does not say: then a key with a list is refused. */
  readonly model: { readonly sent: string; readonly id: string } | null;
  /** The request's `user`, or null. */
  readonly externalId: string | null;
  readonly keyId: string;
  /** A peer's request: it lives longer, and a refusal is remembered so that a late duplicate stays refused. */
  readonly peer: boolean;
  /** The request's Idempotency-Key and what it came with; null without one. */
  readonly idempotency: Idempotency | null;
  /** Its organization's own price list, which its amounts are by; left out or null: none. */
  readonly priceList?: string | null;
};
/**
 * `tokens`: what was granted of the key's token limit, and what is left of it; left out without one. `keepHours`: the
 * organization's setting; left out where it keeps nothing. `priceList`: said where nothing was to be held.
 */
export type HoldGrant = {
  readonly granted: Micros;
  readonly keepHours?: number;
  readonly priceList?: string;
  readonly tokens?: RateState & { readonly granted: number };
};
/** The key's place in its minute was taken, which leaves `admitted`, whatever became of the hold. */
export type AdmittedHold = {
  readonly admitted: RateState;
  readonly held: Result<HoldGrant>;
};

export type Settlement = {
  readonly id: string;
  /** The real cost; the wallet charges at most what is held plus what is free. */
  readonly cost: Micros;
  readonly generation: Generation;
};
/** `unknown`: no such hold, nothing was charged. `voided`: released before; nothing was charged. */
export type SettleAnswer =
  | { readonly kind: "settled"; readonly charged: Micros; readonly shortfall: Micros }
  | { readonly kind: "unknown" }
  | { readonly kind: "voided" };

/** `settled`: the charge stands, too late to void. */
export type VoidAnswer =
  | { readonly kind: "voided" }
  | { readonly kind: "settled"; readonly charged: Micros };

export type BalanceAnswer = {
  readonly creditsMicro: Micros;
  readonly heldMicro: Micros;
  readonly openHolds: number;
  /** What went back of payments and is not paid for; left out: nothing. */
  readonly owedMicro?: Micros;
};

/** `actor`: who adds it; the system unless told. */
export type CreditRequest = {
  readonly amountMicro: Micros;
  readonly reference: string;
  readonly actor?: Actor;
};

/** What may be changed of an end user; left out keeps its value, or takes the default when created. */
export type EndUserChange = {
  readonly monthlyQuotaMicro?: Micros | null | undefined;
  readonly dailyQuotaMicro?: Micros | null | undefined;
  /** 0 to 1. */
  readonly alertThreshold?: number | undefined;
};
export type EndUserRecord = {
  readonly id: string;
  readonly externalId: string;
  readonly monthlyQuotaMicro: Micros | null;
  readonly dailyQuotaMicro: Micros | null;
  readonly alertThreshold: number;
  readonly monthlySpendMicro: Micros;
  readonly dailySpendMicro: Micros;
  readonly createdAt: number;
};
export type PutEndUserAnswer = { readonly created: boolean; readonly endUser: EndUserRecord };
export type EndUserPage = {
  readonly endUsers: readonly EndUserRecord[];
  readonly total: number;
  readonly nextAfter: string | null;
};
/** The calls of the paid path, which may go together. */
export type GroupedCalls = Pick<WalletCalls, "hold" | "admitAndHold" | "settle" | "void">;
/** One of them and its arguments. */
export type WalletPart = {
  readonly [K in keyof GroupedCalls]: {
    readonly call: K;
    readonly args: Parameters<GroupedCalls[K]>;
  };
}[keyof GroupedCalls];
export type PartResult = Awaited<ReturnType<GroupedCalls[keyof GroupedCalls]>>;

/** One ledger row; the amounts of all of them sum to the balance. Times in Unix ms. */
export type LedgerRow = {
  readonly seq: number;
  readonly kind: "usage" | "credit" | "expire" | "shortfall" | "rollup";
  readonly amountMicro: Micros;
  readonly balanceMicro: Micros;
  /** What a `shortfall` row says we paid ourselves; it is no part of the balance. */
  readonly absorbedMicro: Micros;
  readonly createdAt: number;
  readonly reference: string | null;
  readonly generationId: string | null;
};
export type LedgerPage = { readonly rows: readonly LedgerRow[]; readonly nextAfterSeq: number };

export type GenerationRecord = Generation & {
  readonly id: string;
  readonly externalId: string | null;
  /** When it was admitted, Unix ms. */
  readonly createdAt: number;
  readonly costMicro: Micros;
  /** What its hold was granted. */
  readonly heldMicro: Micros;
  /** What it cost beyond the charge, paid by nobody. */
  readonly absorbedMicro: Micros;
};

/** The state of a request: `held` is open, every other one is final (`expired` may still be settled). */
export type RequestState = "held" | "settled" | "voided" | "expired" | "refused";

/** A request that was held for, whatever became of it; `generation` of a settled one. */
export type RequestRecord = {
  readonly id: string;
  readonly state: RequestState;
  /** Null for an outcome whose hold never came. */
  readonly keyId: string | null;
  readonly externalId: string | null;
  readonly createdAt: number;
  /** Null where none was granted. */
  readonly heldMicro: Micros | null;
  readonly generation: GenerationRecord | null;
  /** Of one that was answered with an error, and is kept by itself; `failure`: what a peer's was refused by. */
  readonly failed?: FailedRequest | null;
  readonly failure?: Failure | null;
};
/** Which requests: admitted from `fromMs` to before `beforeMs` (Unix ms), before the id `after`; null: any. `state` and `model`: of one alone. */
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
};
/** `nextAfter` asks for older ones; null: there are none. A page may be short before that. */
export type RequestPage = {
  readonly requests: readonly RequestRecord[];
  readonly nextAfter: string | null;
};

/** An open hold; times in Unix ms. */
export type HoldRecord = {
  readonly id: string;
  readonly keyId: string;
  readonly externalId: string | null;
  readonly admittedAt: number;
  readonly grantedMicro: Micros;
};
export type HoldsPage = {
  readonly holds: readonly HoldRecord[];
  readonly nextAfter: string | null;
};

/** Which events are asked for: from `from` to before `to` (Unix ms), after the one with the id `after`. Null: any. */
export type EventQuery = {
  readonly type: EventType | null;
  readonly from: number | null;
  readonly to: number | null;
  readonly limit: number;
  readonly after: string | null;
};
/** Newest first. `dropped`: how many the log's bound has cost, the newest of them made at `until`; null: none. */
export type EventPage = {
  readonly events: readonly EventRecord[];
  readonly nextAfter: string | null;
  readonly dropped: { readonly events: number; readonly until: number } | null;
};

/** What a wallet's monitoring shows; times in ms, sizes in bytes. */
export type Vitals = {
  readonly openHolds: number;
  /** Of the oldest open hold; null without any. */
  readonly oldestHoldMs: number | null;
  /** Whether the book lacks something of it. */
  readonly isUnpublished: boolean;
  /** Whether the book is another wallet's, so that holds are refused. */
  readonly isInConflict: boolean;
  readonly bytes: number;
};

/** A key that was admitted at its home, without what the book alone knows of it. */
export type UsedKey = Pick<Key, "keyId" | "memberId" | "scope" | "rpmLimit"> & {
  readonly keyHash: string;
};

/** A session that was used and is alive; listed in the order of their minting. Money in micros. */
export type UsedSession = {
  readonly keyId: string;
  readonly session: Session;
  readonly spentMicro: Micros;
  readonly heldMicro: Micros;
};
/** `owner`: all, those of a member's keys, or of one key. `after`: the id of the last one before, or "". */
export type SessionQuery = {
  readonly owner: { readonly memberId: string | null; readonly keyId: string | null };
  readonly limit: number;
  readonly after: string;
};
export type SessionPage = {
  readonly sessions: readonly UsedSession[];
  readonly nextAfter: string | null;
};
/** By whom a session is ended. `isOwn`: also one that was not used. `expiresAt`: when it is over at the latest. */
export type SessionEnding = Pick<SessionQuery, "owner"> & {
  readonly id: string;
  readonly expiresAt: number;
  readonly isOwn: boolean;
  readonly actor: Actor;
};
export type KeyEnding = { readonly keyId: string; readonly actor: Actor };
export type KeyRotation = KeyEnding & { readonly sessionsCut: number | null };

/** The calls that other folders make on a wallet. */
export type WalletCalls = WalletPaymentCalls & {
  /** Makes the wallet for a new organization; again: the same epoch. */
  create(orgId: string): Promise<{ readonly epoch: string }>;
  /**
   * Takes a place in the minute of one of the organization's keys, at the key's home. `invalid_api_key`
   * (unknown or revoked), `rate_limited`, or our own fault: then nothing was taken.
   */
  admit(keyHash: string, shown?: PresentedSecret): Promise<Result<AdmittedKey>>;
  /**
   * `admit`, and `hold` with it in the same turn. A repeat, also one that arrives after its answer, takes
   * neither a place nor a hold and hears what was answered; a refusal of it says nothing of the first attempt.
   */
  admitAndHold(
    keyHash: string,
    request: HoldRequest,
    shown?: PresentedSecret,
  ): Promise<Result<AdmittedHold>>;
  /**
   * Ends a key here for good, durable before it answers; works for one that never came. Repeats are harmless.
   * `by`: who ends it, and its id, for the log.
   */
  revokeKey(keyHash: string, revokedAt: number, by?: KeyEnding): Promise<Result<null>>;
  /** The key with this id as far as it was ever admitted here: what a revocation needs. Null: never. */
  keyOf(keyId: string): Promise<Result<UsedKey | null>>;
  /** A key's new limit counts from this turn on. */
  setKeyLimit(keyHash: string, rpmLimit: number): Promise<Result<null>>;
  /** A key's new terms count from this turn on, for what it has spent before as well. */
  setKeyTerms(keyHash: string, terms: KeyTerms): Promise<Result<null>>;
  /** The secrets that a key may be used with from this turn on. `by`: who rotated it, and the rotation's number where all earlier sessions end. */
  setKeySecrets(keyHash: string, secrets: KeySecrets, by?: KeyRotation): Promise<Result<null>>;
  /** How a key stands by its terms; takes no place in its minute. `invalid_api_key` as for `admit`. */
  keyStanding(keyHash: string, shown?: PresentedSecret): Promise<Result<KeyStatus>>;
  /**
   * For a key (its hash) that was admitted before, or that a peer has admitted: `invalid_api_key` when it has
   * died since, as while a large body was read.
   */
  hold(request: HoldRequest, keyHash?: string, shown?: PresentedSecret): Promise<Result<HoldGrant>>;
  sessions(query: SessionQuery): Promise<Result<SessionPage>>;
  /** Ends a session for good, durable before it answers; one that is nobody's of these is `not_found`. */
  endSession(ending: SessionEnding): Promise<Result<null>>;
  /** `actor`: an operator who charges what only a log line says; told as an event. */
  settle(settlement: Settlement, actor?: Actor): Promise<Result<SettleAnswer>>;
  void(id: string): Promise<Result<VoidAnswer>>;
  /**
   * Several of `GroupedCalls` in one turn, in their order: an answer for each. One that throws harms no other; one that would wait for its key's register is `apart`, with nothing done.
   */
  together(parts: readonly WalletPart[]): Promise<readonly PartAnswer<PartResult>[]>;
  credit(request: CreditRequest): Promise<Result<BalanceAnswer>>;
  balance(): Promise<Result<BalanceAnswer>>;
  /** Undoes `create` when nothing was ever recorded; false when something was. */
  discard(): Promise<boolean>;
  configure(change: own.ConfigurationChange): Promise<Result<own.Configuration>>;
  /**
   * End users and settings are the organization's to change: not while it is suspended, nor with a key that
   * has died since it was admitted.
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
  readSettings(): Promise<Result<own.SettingsRecord>>;
  patchSettings(
    change: own.SettingsChange,
    by?: RequestCredential,
    actor?: Actor,
  ): Promise<Result<own.SettingsRecord>>;
  /** Rows with `seq > afterSeq` in order; `nextAfterSeq` asks for the next page. */
  ledger(afterSeq: number, limit: number): Promise<Result<LedgerPage>>;
  /** Rows with `seq < beforeSeq`, newest first. */
  newestLedger(beforeSeq: number, limit: number): Promise<Result<readonly LedgerRow[]>>;
  /** What is kept of a request, whatever became of it, by its `req_` id. */
  request(id: string): Promise<Result<RequestRecord>>;
  /** The same of a settled request alone: what a Worker of the release before asks. */
  generation(id: string): Promise<Result<GenerationRecord>>;
  requests(asked: RequestQuery): Promise<Result<RequestPage>>;
  /** Keeps the newest of these requests by themselves and counts all. Not to be repeated: it would count twice. */
  noteFailed(batch: FailedBatch): Promise<Result<null>>;
  failures(asked: FailureQuery): Promise<Result<FailureReport>>;
  /** The same by what the counts have not, of the requests that are kept by themselves. */
  keptFailures(asked: KeptFailureQuery): Promise<Result<KeptFailureReport>>;
  /** Open now, oldest first; `keyIds` null: of every key. */
  holds(asked: {
    readonly limit: number;
    readonly after: string | null;
    readonly keyIds: readonly string[] | null;
  }): Promise<Result<HoldsPage>>;
  /** Usage as the requests' own rows have it: by hours, by two things, of some requests; by members since a later release. */
  usageOfRows(asked: reports.RowsQuery): Promise<Result<reports.RowsReport>>;
  usageByMember(asked: reports.RowsQuery): Promise<Result<reports.RowsReport>>;
  costs(asked: reports.CostQuery): Promise<Result<reports.CostReport>>;
  /** Usage of the UTC days `from` to `to` (YYYY-MM-DD), both inclusive; the first 10,000 groups unless asked otherwise. */
  usage(
    from: string,
    to: string,
    groupBy: reports.UsageGroupBy,
    page?: reports.UsagePage,
  ): Promise<Result<reports.UsageReport>>;
  /** Newest first. */
  alerts(limit: number, offset: number): Promise<Result<reports.AlertPage>>;
  /** A page of the log; `invalid_request` for an `after` that is not in it. */
  events(query: EventQuery): Promise<Result<EventPage>>;
  /** For a replay: what the log has from a time on (Unix ms), oldest first. */
  eventsSince(sinceMs: number, limit: number): Promise<Result<readonly EventRecord[]>>;
  /** Takes over what waits in the book for the log. What cannot be taken now waits on; never throws. */
  takeEvents(): Promise<void>;
  /** From the hourly cron: publishes what the book lacks, does what is due, arms the alarm again; how it is then. */
  poke(): Promise<Result<Vitals>>;
  /**
   * Compares ledger, balance, holds, usage and book, in slices between which others are answered; any difference is
   * logged as an error. `conflict` while old rows go faster than it reads.
   */
  reconcile(asked?: ReconcileAsk): Promise<Result<Reconciliation>>;
  /** Makes this wallet the book's again after the old one was lost: adopts its epoch and figures. */
  rebuild(orgId: string, actor?: Actor): Promise<Result<BalanceAnswer>>;
};
