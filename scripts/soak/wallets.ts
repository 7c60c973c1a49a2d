import type { Tenant } from "./tenants.ts";
import type { SoakedRegion } from "./world.ts";

/** What a wallet has stored, past the gateway's own code; null for one that was never made. */
export type WalletLook = {
  readonly open: number;
  readonly oldestMs: number | null;
  /** When requests were granted, Unix ms; only when asked for in detail, as `expired`. */
  readonly granted: readonly number[];
  /** When those were that nobody resolved before their time was up, and how long that was, in ms. */
  readonly expired: readonly { readonly at: number; readonly lifeMs: number }[];
  /** Of each key of this home by its hash: when it was admitted, Unix ms, oldest first; the last 1000 at most. */
  readonly admissions: Readonly<Record<string, readonly number[]>>;
} | null;

/** The organisations that are at home in a region. */
export function tenantsAt({ name }: SoakedRegion, tenants: readonly Tenant[]): readonly Tenant[] {
  return tenants.filter(({ home }) => home === name);
}

/** What the wallets of these organisations have stored, of those at home in the region. Throws while it is away. */
export function walletsAt(
  region: SoakedRegion,
  tenants: readonly Tenant[],
  detailed = false,
): Promise<readonly WalletLook[]> {
  const names = tenantsAt(region, tenants).map(({ orgId }) => orgId);
  return region.control("look", { kind: "WALLET", names, detailed });
}
