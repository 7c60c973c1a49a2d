import type { KeySecret } from "../config.ts";
import type { Model } from "../catalog/model.ts";
import type { Answer } from "../http/endpoint.ts";
import type { Region } from "../lib/caller.ts";
import type { Actor } from "../lib/event.ts";
import type { KeySecrets } from "../lib/key.ts";
import type { Result } from "../lib/failure.ts";
import type { KeyTerms } from "../lib/key-terms.ts";
import type { ModelNames } from "../keys/terms.ts";
import type { Counted } from "../metrics/views.ts";
import type { RouteStanding } from "../routing/route-health.ts";
import type { RevocationItem } from "../regions/outbox-message.ts";
import type { Depth } from "../regions/region-outbox-queue.do.ts";
import type { WalletCalls } from "../wallet/wallet-contract.ts";
import type { DeliveriesCalls } from "../webhooks/deliveries-contract.ts";

/** The wallet calls that operators make. */
export type OperatorWallet = Pick<
  WalletCalls,
  | "create"
  | "credit"
  | "balance"
  | "usage"
  | "alerts"
  | "events"
  | "settle"
  | "rebuild"
  | "configure"
  | "revokeKey"
  | "setKeyLimit"
  | "setKeyTerms"
  | "discard"
  | "ledger"
  | "reconcile"
  | "sessions"
  | "endSession"
  | "setKeySecrets"
  | "eventsSince"
>;

/** The calls on a key's register that operators make. */
export type OperatorRegister = {
  revoke(revokedAt: number): Promise<number>;
  setLimit(rpmLimit: number): Promise<void>;
  setTerms(terms: KeyTerms): Promise<void>;
  setSecrets(secrets: KeySecrets): Promise<void>;
  tellBook(): Promise<void>;
};

/** The calls on what delivers events that operators make. */
export type OperatorDeliveries = Pick<DeliveriesCalls, "sendTest" | "deliveries" | "replay">;

/** What the handlers work with; `now` is one clock read for the request, Unix ms. */
export type OperatorContext = {
  readonly db: D1Database;
  readonly region: Region;
  readonly peers: readonly Region[];
  readonly version: string;
  /** The model that each alias means here. */
  readonly aliases: ReadonlyMap<string, string>;
  /** The routes that this isolate does not ask freely. */
  readonly breakers: readonly RouteStanding[];
  /** What is sold here, by id. */
  readonly models: ReadonlyMap<string, Pick<Model, "routes">>;
  /** Where a peer is, and why it cannot be asked now; null when it answers. */
  readonly askPeer: (peer: Region) => Promise<{ url: string | null; fault: string | null }>;
  readonly names: ModelNames;
  readonly keySecrets: readonly KeySecret[];
  /** The operator who asks. */
  readonly actor: Actor;
  readonly now: number;
  /** A stub of this organisation's wallet. */
  readonly wallet: (orgId: string) => OperatorWallet;
  /** Has the organisation's wallet take what was told in the book, after the answer. */
  readonly takeEvents: (orgId: string) => void;
  /** A stub of what delivers this organisation's events. */
  readonly deliveries: (orgId: string) => OperatorDeliveries;
  /** A fresh stub of the register with this name, the key's hash. */
  readonly register: (keyHash: string) => OperatorRegister;
  /** All console sessions of a key, by `consoleAccount`. */
  readonly consoles: (account: string) => { close(name: null): Promise<Result<null>> };
  /** What the region has counted, and what its last sweep found; throws when its object does. */
  readonly counted: () => Promise<Counted>;
  /** A stub of the region's outbox with this name. */
  readonly outbox: (name: string) => {
    depth(): Promise<Depth>;
    enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  };
};

/** One call: what it works with, path parameters, the URL with its query, the parsed body and the Idempotency-Key (null without). */
export type OperatorCall = OperatorContext & {
  readonly params: Readonly<Record<string, string>>;
  readonly url: string;
  readonly body: unknown;
  readonly idempotencyKey: string | null;
};

/** One endpoint under `/admin/v1`; `path` in Hono's notation. */
export type OperatorEndpoint = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly handle: (call: OperatorCall) => Promise<Answer>;
};
