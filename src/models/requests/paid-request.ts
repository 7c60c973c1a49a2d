import type { Failure, Result } from "../../shared/failure.ts";
import type { AdmittedRequest, Caller } from "../../shared/caller.ts";
import type { FailedAttempt, SkippedRoute } from "../../shared/generation.ts";
import type { IdempotencyHashes } from "../../shared/idempotency.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import type { OverloadReason, RequestSlot } from "../../shared/in-flight.ts";
import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { Tags } from "../../shared/tags.ts";
import type { Timers } from "../../shared/timers.ts";
import type { Price, Usage } from "../../shared/usage.ts";
import type { NumericConfigVariables } from "../../shared/config/config.ts";
import type { Model, PriceOrigin, Route } from "../catalog/model.ts";
import type { Pricing, PricingLookup } from "../catalog/price-lists.ts";
import type { KeyOwnerCache } from "../../accounts/keys/authenticate.ts";
import type {
  StoredResponsesMethods,
  StoredResponseResult,
} from "../../shared/contracts/stored-responses.ts";
import type { MetricCounts } from "../../events/metrics/tally.ts";
import type { AttemptCandidate } from "../routing/attempt.ts";
import type { CoreRequest } from "../core/kinds.ts";
import type { JsonObject, Provider } from "../core/provider.ts";
import type { RouteSpeeds } from "../routing/route-times.ts";
import type { RouteHealth } from "../routing/route-health.ts";
import type { OutcomeItem } from "../../shared/contracts/outbox.ts";
import type { GroupableWalletMethods, HoldGrant } from "../../shared/contracts/wallet.ts";
import type { PeerHoldRequest } from "./authorize.ts";
import type {
  ParsedRequest,
  EndpointAdapter,
  NativeRequest,
  ResponseWriter,
  ConversationAddition,
} from "../core/endpoint-adapter.ts";
import type { PeerStoredResponsesRequest } from "./stored-format.ts";
import type { RunTimer } from "./run-timer.ts";
import type { RouteChoiceFacts } from "./candidate-routes.ts";
import type { CostBounds, OutputCap } from "./hold-bounds.ts";
import type { PromptSize } from "../core/prompt-size.ts";

/** A model that may serve the request: the requested one or a fallback. */
export type ModelOption = {
  readonly sent: string;
  readonly model: Model;
  /**
   * The routes that can serve the request, in order, at the customer's prices. The list is never
   * empty.
   */
  readonly routes: readonly Route[];
  readonly choice: RouteChoiceFacts | null;
  /**
   * A hash that identifies the conversation. Null unless prompt caching can affect the choice of
   * the route.
   */
  readonly conversationHash: string | null;
  readonly prompt: PromptSize;
  readonly cap: OutputCap | null;
  /** Whether the model may reason, visibly or not. */
  readonly mayThink: boolean;
  readonly bounds: CostBounds;
};

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A validated request. The model fields describe the called model, initially the first. */
export type PaidRequest = Mutable<ModelOption> & {
  /** All models in order. Absent if there is only one. */
  options?: readonly ModelOption[];
  /**
   * Routes of models that can't serve the request. Set only if the request names several models.
   */
  unsuitableRoutes?: readonly SkippedRoute[];
  /** The request for the provider. Null once a route has responded, to free the prompt's memory. */
  core: CoreRequest | null;
  /** The prices of the request. Replaced if the wallet returns another price list. */
  pricing: Pricing;
  readonly stream: boolean;
  readonly user: string | null;
  readonly tags?: Tags | undefined;
  readonly trace?: string | undefined;
  readonly dropped: readonly string[];
  readonly reply: ResponseWriter;
  readonly paramOf: ParsedRequest["paramOf"];
  readonly codeOf?: ParsedRequest["codeOf"];
  /** The request in a provider's own protocol. Its body is emptied once a route has responded. */
  native: NativeRequest | null;
  keep: ConversationAddition | null;
};

/** Calls to the key's home region. */
export type HomeClient = {
  /** Authorizes and places a hold in one call. Retries once with the same ID. */
  authorize(hold: PeerHoldRequest | null): Promise<ObjectCallResult<HoldGrant>>;
  callStoredResponses(
    request: Omit<PeerStoredResponsesRequest, "called">,
  ): Promise<Result<StoredResponseResult | null>>;
};

export type OverloadCounters = {
  count(reason: OverloadReason, requestId: string, startedMs: number): void;
};

type Outbox = { enqueue(items: readonly OutcomeItem[]): Promise<unknown> };
export type OutboxGetter = (name: string, attempt: number) => Outbox;
/**
 * Returns a wallet for one attempt. Only the first attempt's call can join other requests' calls.
 */
export type WalletGetter = (orgId: string, attempt: number) => GroupableWalletMethods;

/**
 * The wallet in this region, or a client that calls the home region. Outcomes reach the home region
 * only through the outbox.
 */
type MoneyPlace =
  | { readonly wallet: WalletGetter; readonly home: null }
  | { readonly wallet: null; readonly home: HomeClient };

export type RunServices = MoneyPlace & {
  readonly region: string;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly health: RouteHealth;
  readonly times: RouteSpeeds;
  readonly tally: MetricCounts;
  readonly numbers: NumericConfigVariables;
  readonly callers: KeyOwnerCache;
  readonly sheds: OverloadCounters;
  /**
   * Hashes of keys whose wallet needs the candidate routes. Sending the routes with the hold saves
   * a second call.
   */
  readonly keysNeedingCandidates: Set<string>;
  readonly kept: (orgId: string) => StoredResponsesMethods;
  readonly outbox: (owner: Pick<Caller, "orgId" | "keyId">, attempt: number) => Outbox;
  readonly now: () => number;
  readonly corrected: PricingLookup["corrected"];
};

export class RunProgress {
  admitted: AdmittedRequest | null;
  granted: Micros | null = null;
  open: UnfinishedCall | null = null;
  outcome: Outcome | null = null;
  /** The stored outcome. A new outcome can replace only a `refused` one. */
  stored: OutcomeSaveResult | null = null;
  isBroken = false;
  /** The charge in micro-credits, as far as it is known. */
  charged: Micros = micros(0);
  shortfall = 0;
  /** Whether only the log has the charge, because neither wallet nor outbox accepted it in time. */
  isUnsaved = false;
  keepHours = 0;
  calledMs = 0;
  attempts: readonly FailedAttempt[] = [];
  /** Routes that the hold, a policy or a cooldown excludes. */
  skipped: readonly SkippedRoute[] = [];
  reportedFailure: Failure | null = null;
  /** The write of the response to the store. Until the write ends, the request keeps its slot. */
  storing: Promise<void> | null = null;

  constructor(admitted: AdmittedRequest | null) {
    this.admitted = admitted;
  }
}

/**
 * A provider call in progress. `outcomeIfAborted` returns its charge, and `close` ends the call.
 */
export type UnfinishedCall = {
  outcomeIfAborted(): Outcome;
  close(failure: Failure): Promise<void>;
};

/** One paid request from admission to settlement. */
export type Run = {
  readonly id: string;
  readonly startedMs: number;
  readonly endpoint: EndpointAdapter;
  readonly caller: Caller;
  /** Whether one call admits the key and places the hold. */
  readonly admitsWithHold: boolean;
  readonly request: PaidRequest;
  readonly bodyBytes: number;
  readonly idempotency: IdempotencyHashes | null;
  readonly progress: RunProgress;
  readonly timers: Timers;
  readonly timer: RunTimer;
  readonly services: RunServices;
  readonly slot: Pick<RequestSlot, "grow" | "dropBody"> | undefined;
  readonly respond: (response: Response | Failure) => void;
};

/** A route whose cost the hold can cover. */
export type PaidRoute = AttemptCandidate &
  Pick<ServingRoute, "route" | "capLoweredByMoney"> & { readonly option: ModelOption };

/** The route that responded, and the failed attempts before it. */
export type ServingRoute = {
  readonly route: Route;
  /** Maximum output tokens per choice. Null for a kind without output tokens. */
  readonly cap: number | null;
  /** Whether credits or a budget lowered `cap`, and no token limit lowered it further. */
  readonly capLoweredByMoney: boolean;
  readonly isNative: boolean;
  readonly dropped: readonly string[];
  readonly attempts: number;
  readonly failed?: readonly FailedAttempt[];
  readonly option?: ModelOption;
  /** Whether the first model served the request, but not on its first route. */
  readonly isFallback?: boolean;
  readonly firstByteMs: number;
};

/** The charge for a response, before the wallet limits it. */
export type Charge = {
  readonly kind: "settle";
  readonly route: ServingRoute;
  readonly usage: Usage;
  readonly price: Price;
  readonly cost: Micros;
  readonly origin?: PriceOrigin;
  readonly bought?: Price;
  readonly estimated: boolean;
  readonly finishReason: string | null;
};

/** The release of a hold. `lost` is an estimate of a provider's bill that no customer pays. */
export type Release = { readonly kind: "void"; readonly reason: string; readonly lost?: Charge };

/** The end of a hold, with or without a charge. */
export type Outcome = Charge | Release;

/** The result of saving an outcome: saved by the wallet or outbox, refused by both, or unknown. */
export type OutcomeSaveResult = "saved" | "refused" | "unknown";

/** The end of a run. `charged` is the charge known so far, in micro-credits. */
export type SettledRun = { readonly stored: OutcomeSaveResult; readonly charged: Micros };

/**
 * A response that is complete except for its last byte. No byte of a JSON response has been sent.
 */
export type EndedResponse = {
  readonly outcome: Outcome;
  /** Sends the rest of the response. Returns whether to retry saving an unsaved outcome. */
  sendRest(settledRun: SettledRun): Promise<boolean>;
  kept?(): JsonObject | null;
};
