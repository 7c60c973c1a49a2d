// Responses of `/admin/v1` that these programs read. Amounts are in micro-credits, times in ISO
// 8601.

export type Scope = "regional" | "global";
export type Role = "owner" | "admin" | "billing" | "member";

/** Fields are null if the organization's wallet doesn't respond. */
type BalanceFields = {
  readonly credits_micro: number | null;
  readonly held_micro: number | null;
  readonly open_holds: number | null;
};
export type Organization = BalanceFields & { readonly id: string; readonly slug: string };
export type Organizations = {
  readonly organizations: readonly Pick<Organization, "id" | "slug">[];
};
export type Member = { readonly id: string; readonly email: string };
export type Key = { readonly id: string; readonly name: string };
/** The response to creating a key, the only one that includes the secret. */
export type FreshKey = Key & { readonly key: string };
export type CreatedOrganization = {
  readonly organization: Organization;
  readonly member: Member;
  readonly key: FreshKey;
};

type LedgerRow = {
  readonly seq: number;
  readonly kind: string;
  readonly amount_micro: number;
  readonly balance_micro: number;
  readonly created_at: string;
  readonly reference: string | null;
  readonly generation_id: string | null;
};
export type LedgerPage = { readonly rows: readonly LedgerRow[]; readonly next_after_seq: number };

type UsageAmounts = {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_micro: number;
};
export type Usage = {
  readonly from: string;
  readonly to: string;
  readonly group_by: string;
  readonly data: readonly (UsageAmounts & { readonly group: string | null })[];
  readonly total: UsageAmounts;
};
/** A page of groups. `next_after` is present if more follow. */
export type UsagePage = Usage & { readonly next_after?: string };

export type LostOrganizations = {
  readonly organizations: readonly {
    readonly id: string;
    readonly balance_micro: number;
    readonly updated_at: string;
  }[];
};
export type Reconciliation = BalanceFields & {
  readonly differences: readonly {
    readonly what: string;
    readonly expected: number | string | null;
    readonly found: number | string | null;
  }[];
  readonly rows_read: number;
};
/** The result for some rows. `next_after` is present if more follow. */
export type ReconcilePage = Reconciliation & { readonly next_after?: string };
/** The fields of a `settlement_unsaved` log line that the wallet needs. */
export type SettlementLine = {
  readonly request_id: string;
  readonly cost_micro: number;
  readonly generation: object;
};
export type Settlement = {
  readonly result: "settled" | "voided" | "unknown";
  readonly charged_micro: number;
  readonly shortfall_micro: number;
};
/** Counts are null if an outbox doesn't respond. */
type Outbox = {
  readonly name: string;
  readonly waiting: number | null;
  readonly dead: number | null;
  readonly parked: number | null;
  readonly oldest_ms: number | null;
};
export type Health = {
  readonly region: string;
  readonly version: string;
  /** The model ID of each alias. */
  readonly aliases: Readonly<Record<string, string>>;
  readonly problems: readonly { readonly kind: string; readonly message: string }[];
  readonly book: boolean;
  readonly wallets: { readonly asked: number; readonly unavailable: readonly string[] };
  readonly peers: readonly {
    readonly region: string;
    /** The other region's URL, or null if it isn't configured. */
    readonly url: string | null;
    readonly answers: boolean;
  }[];
  readonly outboxes: readonly Outbox[];
  /** Routes that one isolate skips. */
  readonly breakers: readonly Breaker[];
};
/** `until` is in ISO 8601. */
type Breaker = { readonly route: string; readonly state: string; readonly until: string };

/** The response of `GET /find`. */
export type Found = Readonly<Record<string, unknown>> & {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly next_after: string | null;
};
