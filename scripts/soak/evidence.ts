import { setTimeout as sleep } from "node:timers/promises";
import { getHealth, getLedger, getOrganization, postReconcile } from "../admin-client.ts";
import { atOnce } from "../at-once.ts";
import type { GrantLog, RegisterLog } from "./judge-limits.ts";
import type { Estate, LedgerRow, OutboxDepth } from "./judge-money.ts";
import type { Tenant } from "./tenants.ts";
import { clockMs, sumOf } from "./trace.ts";
import { REGIONS } from "./world.ts";
import type { SoakedRegion, World } from "./world.ts";

/** What a wallet has stored, past the gateway's own code; null for one that was never made. */
type WalletLook = {
  readonly open: number;
  /** When requests were granted, Unix ms; only when asked for in detail, as what follows. */
  readonly granted: readonly number[];
  /** Of each key of this home by its hash: when it was admitted, Unix ms, oldest first; the last 1000 at most. */
  readonly admissions: Readonly<Record<string, readonly number[]>>;
} | null;

/** The organisations that are at home in a region. */
function tenantsAt({ name }: SoakedRegion, tenants: readonly Tenant[]): readonly Tenant[] {
  return tenants.filter(({ home }) => home === name);
}

/** What the wallets of these organisations have stored, of those at home in the region. Throws while it is away. */
function walletsAt(
  region: SoakedRegion,
  tenants: readonly Tenant[],
  detailed = false,
): Promise<readonly WalletLook[]> {
  const names = tenantsAt(region, tenants).map(({ orgId }) => orgId);
  return region.control("look", { kind: "WALLET", names, detailed });
}

/** What a region's D1 says, read past the gateway. */
function rowsOf<T>({ control }: SoakedRegion, sql: string, ...values: string[]): Promise<T[]> {
  return control("rows", { sql, values });
}

const POLL_MS = 1000;
/** Every so many polls what is waited for is said. */
const TOLD_EVERY = 5;
/** Beside the life of a hold: a quiet wallet publishes every three minutes. */
const SLACK_MS = 210_000;

/** How long that took, and what was still waited for then: "" when all was at rest. */
export type Healed = { readonly tookMs: number; readonly waitingFor: string };

/**
 * Waits, without touching anything, until the regions have mended themselves: outboxes empty, no hold open,
 * every book the wallet's. Bounded; what it still waited for then is the invariants' to name.
 */
export async function quiet(
  world: World,
  tenants: readonly Tenant[],
  progress: (line: string) => void,
): Promise<Healed> {
  const fromMs = clockMs();
  const untilMs = fromMs + world.times.peerHoldS * 1000 + SLACK_MS;
  for (let poll = 0; ; poll++) {
    const waitingFor = await unrest(world, tenants).catch((error: unknown) => String(error));
    if (waitingFor === "" || clockMs() > untilMs) return { tookMs: clockMs() - fromMs, waitingFor };
    if (poll % TOLD_EVERY === 0) progress(`waiting for ${waitingFor}`);
    await sleep(POLL_MS);
  }
}

async function unrest({ regions }: World, tenants: readonly Tenant[]): Promise<string> {
  const parts = REGIONS.map(async (name) => {
    const region = regions[name];
    const { waiting } = await outboxDepth(region);
    const open = sumOf(await walletsAt(region, tenants), (wallet) => wallet?.open ?? 0);
    if (waiting + open > 0) return `${waiting} messages and ${open} holds in ${name}`;
    const books = await booksOf(region);
    const wallets = await Promise.all(
      tenantsAt(region, tenants).map(({ orgId }) => getOrganization(region.admin, orgId)),
    );
    const behind = wallets.filter(({ id, credits_micro }) => books.get(id) !== credits_micro);
    return behind.length > 0 ? `${behind.length} books in ${name}` : "";
  });
  return (await Promise.all(parts)).filter((part) => part !== "").join(", ");
}

/** What a region's outboxes hold; one that does not answer counts as a message. */
export async function outboxDepth({ admin, name }: SoakedRegion): Promise<OutboxDepth> {
  const { outboxes } = await getHealth(admin);
  const sum = (of: "waiting" | "dead" | "parked") => sumOf(outboxes, (one) => one[of] ?? 1);
  return { region: name, waiting: sum("waiting"), dead: sum("dead"), parked: sum("parked") };
}

/** Balances in a region's D1: micros by organisation. */
async function booksOf(region: SoakedRegion): Promise<Map<string, number>> {
  type Row = { readonly org_id: string; readonly credits_micro: number };
  const rows = await rowsOf<Row>(region, "SELECT org_id, credits_micro FROM balances");
  return new Map(rows.map((row) => [row.org_id, row.credits_micro]));
}

const READERS = 4;
const PAGE = 1000;
const NAMES_AT_ONCE = 200;

/** Every organisation as it is at rest, read through the operator's calls and, its book, past them. */
export async function estatesOf(
  { regions }: World,
  tenants: readonly Tenant[],
): Promise<readonly Estate[]> {
  const books = { eu: await booksOf(regions.eu), us: await booksOf(regions.us) };
  const jobs = tenants.map(({ orgId, home, credited }) => async (): Promise<Estate> => {
    const region = regions[home];
    const ledger = await ledgerOf(region, orgId);
    const { differences } = await postReconcile(region.admin, orgId);
    const now = await getOrganization(region.admin, orgId);
    return {
      orgId,
      balance: now.credits_micro ?? NaN,
      openHolds: now.open_holds ?? NaN,
      held: now.held_micro ?? NaN,
      ledger,
      credited: sumOf([...credited.values()], (amount) => amount),
      book: books[home].get(orgId) ?? null,
      differences: differences.map(
        ({ what, expected, found }) => `${what}: expected ${expected}, found ${found}`,
      ),
    };
  });
  return atOnce(READERS, jobs);
}

async function ledgerOf({ admin }: SoakedRegion, orgId: string): Promise<LedgerRow[]> {
  const rows: LedgerRow[] = [];
  for (let after_seq = 0; ;) {
    const page = await getLedger(admin, orgId, { after_seq, limit: PAGE });
    rows.push(...page.rows);
    if (page.rows.length < PAGE) return rows;
    after_seq = page.next_after_seq;
  }
}

/** What registers and wallets have stored of each key and each organisation. */
export async function logsOf(
  { regions }: World,
  tenants: readonly Tenant[],
): Promise<{ readonly registers: readonly RegisterLog[]; readonly grants: readonly GrantLog[] }> {
  const both = REGIONS.map(async (home) => {
    const away = home === "eu" ? "us" : "eu";
    const keys = await keysOf(regions[home]);
    const wallets = await walletsAt(regions[home], tenants, true);
    const atHome = new Map(wallets.flatMap((look) => Object.entries(look?.admissions ?? {})));
    const looks = await registersAt(regions[away], keys);
    const registers = keys.flatMap(({ id: keyId, hash, rpm_limit: limit }, i): RegisterLog[] => [
      { keyId, region: home, limit, admissions: atHome.get(hash) ?? [] },
      { keyId, region: away, limit, admissions: looks[i]?.admissions ?? [] },
    ]);
    const grants = tenantsAt(regions[home], tenants).map(({ orgId, limit }, i): GrantLog => {
      return { orgId, limit, granted: wallets[i]?.granted ?? [] };
    });
    return { registers: registers.filter(({ admissions }) => admissions.length > 0), grants };
  });
  const logs = await Promise.all(both);
  return {
    registers: logs.flatMap(({ registers }) => registers),
    grants: logs.flatMap(({ grants }) => grants),
  };
}

type RegisterLook = { readonly admissions: readonly number[] } | null;
type KeyRow = { readonly id: string; readonly hash: string; readonly rpm_limit: number };

async function registersAt(region: SoakedRegion, keys: readonly KeyRow[]): Promise<RegisterLook[]> {
  const looks: RegisterLook[] = [];
  for (let at = 0; at < keys.length; at += NAMES_AT_ONCE) {
    const names = keys.slice(at, at + NAMES_AT_ONCE).map(({ hash }) => hash);
    const asked = { kind: "KEY_REGISTER", names, detailed: true };
    looks.push(...(await region.control<RegisterLook[]>("look", asked)));
  }
  return looks;
}

/** The keys of a region's book: past the gateway, because nobody is ever told a hash. */
function keysOf(region: SoakedRegion): Promise<KeyRow[]> {
  return rowsOf(region, "SELECT id, hash, rpm_limit FROM keys");
}
