import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { SettledGeneration, RequestRecord } from "../../../src/shared/contracts/wallet.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";
import type { TestRegion } from "./two-regions.ts";

/** Unknown outcomes are retried after at most 30 s, and the machine can be slow. */
const RESOLVED_WITHIN_MS = 100_000;
const POLL_MS = 20;

type BalanceResponse = {
  readonly credits_micro: number;
  readonly held_micro: number;
  readonly open_holds: number;
};
type LedgerRow = {
  readonly kind: string;
  readonly amount_micro: number;
  readonly generation_id: string | null;
};

export async function operatorReads<T>(region: TestRegion, path: string): Promise<T> {
  const response = await fetch(`${region.adminUrl}${path}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

/** Waits until the organization has no open hold, and returns its balance. */
export async function resolved(region: TestRegion, orgId: string): Promise<BalanceResponse> {
  const deadline = performance.now() + RESOLVED_WITHIN_MS;
  for (;;) {
    const balance = await operatorReads<BalanceResponse>(region, `/orgs/${orgId}`);
    if (balance.open_holds === 0) return balance;
    expect(performance.now(), "a hold is still open").toBeLessThan(deadline);
    await sleep(POLL_MS);
  }
}

export async function ledger(region: TestRegion, orgId: string): Promise<LedgerRow[]> {
  const rows: LedgerRow[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page: { rows: LedgerRow[]; next_after_seq: number | null } = await operatorReads(
      region,
      `/orgs/${orgId}/ledger?after_seq=${after}&limit=1000`,
    );
    rows.push(...page.rows);
    after = page.rows.length === 0 ? null : page.next_after_seq;
  }
  return rows;
}

/** Returns the wallet's generations of paid requests, oldest first. */
export async function generations(region: TestRegion, orgId: string): Promise<SettledGeneration[]> {
  const rows = await ledger(region, orgId);
  const namespace = await region.miniflare.getDurableObjectNamespace(
    "WALLET",
    `turnpike-${region.name}`,
  );
  const wallet = namespace.get(namespace.idFromName(orgId)) as unknown as {
    request(id: string): Promise<{ ok: boolean; value: RequestRecord }>;
  };
  const records: SettledGeneration[] = [];
  for (const { generation_id: id } of rows.filter((row) => row.kind === "usage")) {
    const { value } = await wallet.request(id ?? "");
    if (value.generation !== null) records.push(value.generation);
  }
  return records;
}
