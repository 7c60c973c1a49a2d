import type { Failure, Result } from "../../shared/failure.ts";
import type { Admitted, Caller } from "../../shared/caller.ts";
import type { FailedAttempt } from "../../shared/generation.ts";
import type { Idempotency } from "../../shared/idempotency.ts";
import type { Reached } from "../../shared/reach-object.ts";
import type { ShedReason, Slot } from "../../shared/in-flight.ts";
import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
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
import type { Bounds, OutputCap } from "./hold-bounds.ts";
import type { PromptSize } from "../core/prompt-size.ts";

/** One request that costs money, checked and bounded, before anything is held for it. */
export type PaidRequest = {
  /** What routes are asked; null once one has answered: a long stream does not keep its prompt. */
  core: CoreRequest | null;
  /** At the catalog's own prices. */
  readonly model: Model;
  /** What its customer pays: asked for anew where the wallet goes by another price list. */
  pricing: Pricing;
  /** The model's routes that can do this request, in order, at the customer's prices; at least one. */
  routes: readonly Route[];
  readonly stream: boolean;
  readonly user: string | null;
  /** As the door said them. */
  readonly dropped: readonly string[];
  /** The same on a route of the door's own wire. */
  readonly droppedNatively: readonly string[];
  readonly reply: ResponseWriter;
  readonly paramOf: ParsedRequest["paramOf"];
  readonly codeOf?: ParsedRequest["codeOf"];
  /** Its body is empty once a route has answered. */
  native: NativeRequest | null;
  /** What is kept of it; null where nothing is, which is known once the hold is granted. */
  keep: ConversationAddition | null;
  readonly prompt: PromptSize;
  /** Null for a kind without output. */
  readonly cap: OutputCap | null;
  /** The model may think before or while it answers, whether or not it shows its thoughts. */
  readonly mayThink: boolean;
  bounds: Bounds;
};

/** The region in which a caller's wallet is, asked from another one. */
export type Home = {
  /** Whose key it is, and the hold: one call, repeated once under its id. */
  authorize(hold: Omit<HoldRequest, "keyId" | "peer"> | null): Promise<Reached<HoldGrant>>;
  /** What is kept of answers there, or to be. */
  askKept(request: Omit<StoredResponsesRequest, "called">): Promise<Result<RecallResult | null>>;
};

/** What counts that something was refused for want of room. */
export type ShedCounters = { note(reason: ShedReason, requestId: string, startedMs: number): void };

/** What of an outbox a run asks. */
type Outbox = { enqueue(items: readonly OutcomeItem[]): Promise<unknown> };
/** An outbox by its name, for one attempt, as a wallet is. */
export type OutboxAt = (name: string, attempt: number) => Outbox;
/** A wallet for one attempt at a call: the first may go together with others' calls, a repeat goes alone. */
export type WalletAt = (orgId: string, attempt: number) => GroupedCalls;

/** Where a run's money is: in a wallet of this region, or at its key's home, which an outcome reaches by the outbox alone. */
type MoneyPlace =
  | { readonly wallet: WalletAt; readonly home: null }
  | { readonly wallet: null; readonly home: Home };

/** What a run needs from the rest of the house. Stubs are made fresh at each call: a failed one stays broken. */
export type RunServices = MoneyPlace & {
  readonly region: string;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly health: RouteHealth;
  /** What this isolate counts. */
  readonly tally: Tally;
  readonly numbers: NumberVars;
  /** Whom this isolate has met: a key that is refused may be dead. */
  readonly callers: KnownCallers;
  readonly sheds: ShedCounters;
  /** The organization's kept answers, at its home. */
  readonly kept: (orgId: string) => StoredResponsesCalls;
  readonly outbox: (owner: Pick<Caller, "orgId" | "keyId">, attempt: number) => Outbox;
  readonly now: () => number;
  /** The prices of a moment by the price list that the caller's wallet goes by. */
  readonly corrected: PricingFor["corrected"];
};

/** What a run has come to so far. */
type Progress = {
  /** Its key's place in its minute and what is left of its tokens; null before they are known. */
  admitted: Admitted | null;
  /** What it has open at a provider; null before one may be asked. */
  open: OpenCall | null;
  /** Its outcome, once it was stored or could not be; null while it goes on or was refused before. */
  outcome: Outcome | null;
  /** Where that is. What is not known to be nowhere is never stored as another. */
  stored: StoredOutcome | null;
  /** A bug has ended it. */
  isBroken: boolean;
  /** Micros charged, and those that no balance could pay, as far as known. */
  charged: Micros;
  shortfall: number;
  /** Its charge is in the log alone: neither wallet nor outbox took it in time. */
  isUnsaved: boolean;
  /** For how long its organization keeps answers, as its hold said; 0: not at all. */
  keepHours: number;
  /** When the newest attempt was sent, ms since the request came. */
  askedMs: number;
  /** The attempts that failed, in their order. */
  attempts: readonly FailedAttempt[];
  /** What its client was told in the midst of a stream; null: nothing. */
  told: Failure | null;
  /** Its answer is being kept: what the request's place is held for to the last. */
  keeping: Promise<void> | null;
};

/** What a run has open at a provider, should it be ended in its midst. */
export type OpenCall = {
  /** What is owed for it as it stands. */
  owed(): Outcome;
  /** Lets go of it, and tells whoever still reads. */
  close(failure: Failure): Promise<void>;
};

/** Before anything was asked. */
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

/** One run of THE PATH: who, what, with what, and where the answer goes. */
export type Run = {
  /** `req_` + 24: request id, hold id and generation id. */
  readonly id: string;
  readonly startedMs: number;
  readonly door: EndpointAdapter;
  readonly caller: Caller;
  /** Its key is admitted in the call that holds for it. */
  readonly isPresumed: boolean;
  readonly request: PaidRequest;
  /** Of the body that came. */
  readonly bodyBytes: number;
  /** Its Idempotency-Key and what it came with; null without one. */
  readonly idempotency: Idempotency | null;
  readonly progress: Progress;
  /** All deadlines of the run; closed when it ends. */
  readonly timers: Timers;
  /** Its end from outside: the total deadline, or a client that left. */
  readonly timer: RunTimer;
  readonly services: RunServices;
  /** Its place among those in flight, and the room that its body takes. */
  readonly slot: Pick<Slot, "grow" | "dropBody"> | undefined;
  /** Gives the client its response, or a failure, which the request's log line then names; only the first call counts. */
  readonly answer: (told: Response | Failure) => void;
};

/** A route that the hold pays for, as it may be asked. */
export type PaidRoute = Candidate & { readonly route: Route };

/** What a hold allows. */
export type GrantedHold = {
  /** The routes that it pays for, in their order, each with the output cap that it pays for there. */
  readonly routes: readonly PaidRoute[];
};

/** The route that serves, and what it may cost. */
export type ServingRoute = {
  readonly route: Route;
  /** The output cap that was sent, tokens per choice; null for a kind without output. */
  readonly cap: number | null;
  /** It was asked, and answers, in the door's own wire. */
  readonly isNative: boolean;
  /** What it left out of the request, in the core's words. */
  readonly dropped: readonly string[];
  readonly attempts: number;
  /** Those before it; left out where there are none. */
  readonly failed?: readonly FailedAttempt[];
  readonly firstByteMs: number;
};

/** What an answer costs, before the wallet has clamped it. */
export type Charge = {
  readonly kind: "settle";
  readonly route: ServingRoute;
  readonly usage: Usage;
  /** The route's at the size that the prompt turned out to have, and what the usage comes to at it. */
  readonly price: Price;
  readonly cost: Micros;
  /** As a generation has them. */
  readonly origin?: PriceOrigin;
  readonly bought?: Price;
  readonly estimated: boolean;
  readonly finishReason: string | null;
};

/** What a run came to. */
export type Outcome = Charge | { readonly kind: "void"; readonly reason: string };

/**
 * Where an outcome is: `saved` in the wallet or the outbox; `refused`, definitely in neither; `unknown`
 * when a call was lost, which may have been carried out all the same.
 */
export type StoredOutcome = "saved" | "refused" | "unknown";

/** `charged`: what the customer paid, as far as known. */
export type SettledRun = { readonly stored: StoredOutcome; readonly charged: Micros };

/** An answer of which all but the last byte has left (or, of a JSON one, nothing yet). */
export type EndedResponse = {
  readonly outcome: Outcome;
  /**
   * Gives the client the rest, once the outcome is stored or could not be. True where its charge is due
   * although nobody may have it: it is tried on.
   */
  last(settled: SettledRun): Promise<boolean>;
  /** The answer as it is kept, after `last`; null: it is not. Left out: none ever is. */
  kept?(): JsonObject | null;
};
