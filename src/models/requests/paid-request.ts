import type { Failure, Result } from "../../shared/failure.ts";
import type { Admitted, Caller } from "../../shared/caller.ts";
import type { FailedAttempt } from "../../shared/generation.ts";
import type { Idempotency } from "../../shared/idempotency.ts";
import type { Reached } from "../../shared/reach-object.ts";
import type { ShedReason, Slot } from "../../shared/in-flight.ts";
import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { Tags } from "../../shared/tags.ts";
import type { Timers } from "../../shared/timers.ts";
import type { Price, Usage } from "../../shared/usage.ts";
import type { NumberVars } from "../../shared/config/config.ts";
import type { Model, PriceOrigin, Route } from "../catalog/model.ts";
import type { Pricing, PricingFor } from "../catalog/price-lists.ts";
import type { KnownCallers } from "../../accounts/keys/authenticate.ts";
import type {
  StoredResponsesCalls,
  RecallResult,
} from "../../shared/contracts/stored-responses.ts";
import type { Tally } from "../../events/metrics/tally.ts";
import type { Candidate } from "../routing/attempt.ts";
import type { CoreRequest } from "../core/kinds.ts";
import type { JsonObject, Provider } from "../core/provider.ts";
import type { RouteTimes } from "../routing/route-times.ts";
import type { RouteHealth } from "../routing/route-health.ts";
import type { OutcomeItem } from "../../shared/contracts/outbox.ts";
import type { GroupedCalls, HoldGrant, HoldRequest } from "../../shared/contracts/wallet.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  NativeRequest,
  ResponseWriter,
  ConversationAddition,
} from "../core/endpoint-adapter.ts";
import type { StoredResponsesRequest } from "./stored-format.ts";
import type { RunTimer } from "./run-timer.ts";
import type { RouteChoice } from "./candidate-routes.ts";
import type { Bounds, OutputCap } from "./hold-bounds.ts";
import type { PromptSize } from "../core/prompt-size.ts";

/** A model that may serve a request, with its routes and bounds. */
export type ModelOption = {
  /** Its name in the request. */
  readonly sent: string;
  readonly model: Model;
  /** The capable routes in order, at the customer's prices; at least one. */
  readonly routes: readonly Route[];
  /** The client's preferences among routes; absent or null for none. */
  readonly choice?: RouteChoice | null;
  /** The hash of its conversation; absent or null if the choice of a route finds no prompt cache. */
  readonly affinity?: string | null;
  readonly prompt: PromptSize;
  /** Null for a kind without output. */
  readonly cap: OutputCap | null;
  /** The model may think before or while it answers, whether or not it shows its thoughts. */
  readonly mayThink: boolean;
  readonly bounds: Bounds;
};

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A paid request, checked and bounded, before its hold. The fields of an option are those of the model that
 * is being called, at first of the first one.
 */
export type PaidRequest = Mutable<ModelOption> & {
  /** All its models in order; absent for one. */
  options?: readonly ModelOption[];
  /** The request for routes; null once one has answered, so that a long stream doesn't keep its prompt. */
  core: CoreRequest | null;
  /** The customer's prices. They are read again if the wallet has another price list. */
  pricing: Pricing;
  readonly stream: boolean;
  readonly user: string | null;
  readonly tags?: Tags | undefined;
  readonly dropped: readonly string[];
  readonly droppedNatively: readonly string[];
  readonly reply: ResponseWriter;
  readonly paramOf: ParsedRequest["paramOf"];
  readonly codeOf?: ParsedRequest["codeOf"];
  /** Its body is empty once a route has answered. */
  native: NativeRequest | null;
  /** The part to store; null if nothing is stored, which is known after the hold. */
  keep: ConversationAddition | null;
};

/** The other region with the caller's wallet. */
export type Home = {
  /** Authorizes and holds in one call, which is repeated once under its id. */
  authorize(hold: Omit<HoldRequest, "keyId" | "peer"> | null): Promise<Reached<HoldGrant>>;
  askKept(request: Omit<StoredResponsesRequest, "called">): Promise<Result<RecallResult | null>>;
};

/** A counter of requests that were shed for lack of room. */
export type ShedCounters = { note(reason: ShedReason, requestId: string, startedMs: number): void };

type Outbox = { enqueue(items: readonly OutcomeItem[]): Promise<unknown> };
/** Returns an outbox by name, for one attempt. */
export type OutboxAt = (name: string, attempt: number) => Outbox;
/** Returns a wallet for one attempt. The first may be grouped with other calls; a repeat goes alone. */
export type WalletAt = (orgId: string, attempt: number) => GroupedCalls;

/**
 * The place of a run's money: a wallet of this region, or the key's home, which outcomes reach only through
 * the outbox.
 */
type MoneyPlace =
  | { readonly wallet: WalletAt; readonly home: null }
  | { readonly wallet: null; readonly home: Home };

/** The services of a run. Stubs are new at each call, because a failed one stays broken. */
export type RunServices = MoneyPlace & {
  readonly region: string;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly health: RouteHealth;
  readonly times: RouteTimes;
  readonly tally: Tally;
  readonly numbers: NumberVars;
  /** The keys that this isolate knows. A rejected key may be revoked. */
  readonly callers: KnownCallers;
  readonly sheds: ShedCounters;
  /** Hashes of keys whose wallet asked for candidates. They only save a call. */
  readonly policies: Set<string>;
  readonly kept: (orgId: string) => StoredResponsesCalls;
  readonly outbox: (owner: Pick<Caller, "orgId" | "keyId">, attempt: number) => Outbox;
  readonly now: () => number;
  /** The prices at a time by the caller's price list. */
  readonly corrected: PricingFor["corrected"];
};

type Progress = {
  /** Its key's place in the minute and its remaining tokens; null before they are known. */
  admitted: Admitted | null;
  /** Its open call to a provider; null before one may be asked. */
  open: OpenCall | null;
  /** Its outcome once it was stored or couldn't be; null before. */
  outcome: Outcome | null;
  /** The place of the outcome. Another outcome is stored only if it is known to be nowhere. */
  stored: StoredOutcome | null;
  isBroken: boolean;
  /** Micro-credits charged, and those beyond the balance, as far as known. */
  charged: Micros;
  shortfall: number;
  /** Whether its charge is only in the log, because wallet and outbox didn't accept it in time. */
  isUnsaved: boolean;
  /** The hours for which its organization stores responses; 0: not at all. */
  keepHours: number;
  /** The time of the newest attempt, in ms since the request. */
  askedMs: number;
  attempts: readonly FailedAttempt[];
  /** The failure sent within a stream; null without one. */
  told: Failure | null;
  /** Set while its answer is being stored. The slot stays taken until then. */
  keeping: Promise<void> | null;
};

/** A run's open call to a provider. */
export type OpenCall = {
  /** Returns the charge so far. */
  owed(): Outcome;
  close(failure: Failure): Promise<void>;
};

/** The progress before any call. */
export const NO_OPEN_CALL: Readonly<Progress> = {
  admitted: null,
  open: null,
  outcome: null,
  stored: null,
  isBroken: false,
  charged: micros(0),
  shortfall: 0,
  isUnsaved: false,
  keepHours: 0,
  askedMs: 0,
  attempts: [],
  told: null,
  keeping: null,
};

/** One run of the paid path. */
export type Run = {
  /** `req_` + 24: request id, hold id and generation id. */
  readonly id: string;
  readonly startedMs: number;
  readonly door: EndpointAdapter;
  readonly caller: Caller;
  readonly isPresumed: boolean;
  readonly request: PaidRequest;
  readonly bodyBytes: number;
  /** Its Idempotency-Key and body hash; null without a key. */
  readonly idempotency: Idempotency | null;
  readonly progress: Progress;
  /** All deadlines of the run, closed at its end. */
  readonly timers: Timers;
  /** Its end from outside: the total deadline, or a disconnect. */
  readonly timer: RunTimer;
  readonly services: RunServices;
  /** Its slot among requests in flight, and its body's room. */
  readonly slot: Pick<Slot, "grow" | "dropBody"> | undefined;
  /** Sends the response or failure, which the log line then names. Only the first call counts. */
  readonly answer: (told: Response | Failure) => void;
};

/** A route that the hold pays for, of one of the request's models. */
export type PaidRoute = Candidate & { readonly route: Route; readonly option: ModelOption };

/** The result of a granted hold. */
export type GrantedHold = {
  /** The routes that it pays for in order, each with its output cap. */
  readonly routes: readonly PaidRoute[];
};

/** The serving route and its bounds. */
export type ServingRoute = {
  readonly route: Route;
  /** The output cap in tokens per choice; null for a kind without output. */
  readonly cap: number | null;
  readonly isNative: boolean;
  readonly dropped: readonly string[];
  readonly attempts: number;
  /** The failed attempts before it; left out if there are none. */
  readonly failed?: readonly FailedAttempt[];
  /** The model that it serves; absent if the request has one. */
  readonly option?: ModelOption;
  /** It isn't the first route of its model, which is the first one. */
  readonly isFallback?: boolean;
  readonly firstByteMs: number;
};

/** The charge of an answer, before the wallet limits it. */
export type Charge = {
  readonly kind: "settle";
  readonly route: ServingRoute;
  readonly usage: Usage;
  /** The route's price at the final prompt size, and the cost. */
  readonly price: Price;
  readonly cost: Micros;
  readonly origin?: PriceOrigin;
  readonly bought?: Price;
  readonly estimated: boolean;
  readonly finishReason: string | null;
};

/** The outcome of a run. */
export type Outcome = Charge | { readonly kind: "void"; readonly reason: string };

/**
 * The place of an outcome: `saved` in the wallet or the outbox; `refused`, certainly in neither; `unknown`
 * after a lost call that may have succeeded.
 */
export type StoredOutcome = "saved" | "refused" | "unknown";

/** `charged`: the amount that the customer paid, as far as known. */
export type SettledRun = { readonly stored: StoredOutcome; readonly charged: Micros };

/** An answer without its last byte (a JSON answer without any). */
export type EndedResponse = {
  readonly outcome: Outcome;
  /**
   * Sends the rest once the outcome is stored or couldn't be. Returns true if the charge is due although the
   * answer may be lost; it is retried then.
   */
  last(settled: SettledRun): Promise<boolean>;
  /** Returns the response to store, after `last`; null if there is none. Left out: never any. */
  kept?(): JsonObject | null;
};
