import type { KeySecret } from "../config.ts";
import type { Region } from "../lib/caller.ts";
import type { Result } from "../lib/failure.ts";
import type { Depth } from "../regions/region-outbox-queue.do.ts";
import type { WalletCalls } from "../wallet/wallet-contract.ts";

export type JsonObject = { readonly [key: string]: unknown };

/** Wallet calls that only operators make. Rows and reports are JSON as `/admin/v1` shows it. */
export type OperatorWalletCalls = WalletCalls & {
  /** Undoes `create` for an organisation that never came to be. */
  discard(): Promise<unknown>;
  /** Rows with `seq > afterSeq` in order, at most `limit`. */
  ledger(
    afterSeq: number,
    limit: number,
  ): Promise<Result<{ readonly rows: readonly object[]; readonly nextAfterSeq: number | null }>>;
  /** Ledger, balance, book and open holds compared; differences listed. */
  reconcile(): Promise<Result<JsonObject>>;
};

/** What the handlers work with; `now` is one clock read for the request, Unix ms. */
export type OperatorContext = {
  readonly db: D1Database;
  readonly region: Region;
  readonly version: string;
  readonly keySecrets: readonly KeySecret[];
  readonly now: number;
  /** A stub of this organisation's wallet. */
  readonly wallet: (orgId: string) => OperatorWalletCalls;
  /** A stub of the region's outbox with this name. */
  readonly outbox: (name: string) => { depth(): Promise<Depth> };
};

/** One request as the mount hands it over: path parameters, query, and the parsed body (null without one). */
export type OperatorRequest = {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: unknown;
};

/** One endpoint under `/admin/v1`; `path` in Hono's notation, `status` of its success. */
export type OperatorEndpoint = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly status: 200 | 201;
  readonly handle: (
    context: OperatorContext,
    request: OperatorRequest,
  ) => Promise<Result<JsonObject>>;
};
