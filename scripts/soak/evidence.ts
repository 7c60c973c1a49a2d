import { setTimeout as sleep } from "node:timers/promises";
import { getHealth, getLedger, getOrganization, getUsage, postReconcile } from "../admin-client.ts";
import { atOnce } from "../at-once.ts";
import { clockMs } from "./client.ts";
import type { GrantLog, RegisterLog, Residue } from "./judge-limits.ts";
import type { EndUser, Estate, LedgerRow, OutboxDepth } from "./judge-money.ts";
import type { Tenant } from "./tenants.ts";
import { REGIONS } from "./world.ts";
import type { SoakedRegion, World } from "./world.ts";

/** What a wallet has stored, past the gateway's own code; null for one that was never made. */
type WalletLook = {
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
function tenantsAt({ name }: SoakedRegion, tenants: readonly Tenant[]): readonly Tenant[] {
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

const POLL_MS = 1000;
/** Every so many polls what is waited for is said. */
const TOLD_EVERY = 5;
/** Beside the life of a hold: the slowest a busy wallet publishes is once a minute. */
const SLACK_MS = 90_000;
/** How long nothing must happen for alarms to be at rest. */
const QUIET_MS = 4000;

export type Healed = {
  readonly isQuiet: boolean;
  readonly tookMs: number;
  readonly waitingFor: string;
};

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
    const tookMs = clockMs() - fromMs;
    if (waitingFor === "") return { isQuiet: true, tookMs, waitingFor };
    if (clockMs() > untilMs) return { isQuiet: false, tookMs, waitingFor };
    if (poll % TOLD_EVERY === 0) progress(`waiting for ${waitingFor}`);
    await sleep(POLL_MS);
  }
}

async function unrest({ regions }: World, tenants: readonly Tenant[]): Promise<string> {
  const parts = await Promise.all(
    REGIONS.map(async (name) => {
      const region = regions[name];
      const { waiting } = await outboxDepth(region);
      const wallets = await walletsAt(region, tenants);
      const open = wallets.reduce((sum, wallet) => sum + (wallet?.open ?? 0), 0);
      if (waiting + open > 0) return `${waiting} messages and ${open} holds in ${name}`;
      const books = await booksOf(region);
      const standings = await Promise.all(
        tenantsAt(region, tenants).map(({ orgId }) => getOrganization(region.admin, orgId)),
      );
      const behind = standings.filter(({ id, credits_micro }) => books.get(id) !== credits_micro);
      return behind.length > 0 ? `${behind.length} books in ${name}` : "";
    }),
  );
  return parts.filter((part) => part !== "").join(", ");
}

/** What a region's outboxes hold; one that does not answer counts as a message. */
export async function outboxDepth({ admin, name }: SoakedRegion): Promise<OutboxDepth> {
  const { outboxes } = await getHealth(admin);
  const sum = (of: "waiting" | "dead" | "parked"): number =>
    outboxes.reduce((all, one) => all + (one[of] ?? 1), 0);
  return { region: name, waiting: sum("waiting"), dead: sum("dead"), parked: sum("parked") };
}

/** Balances in the region's D1, read past the gateway: micros by organisation. */
async function booksOf({ control }: SoakedRegion): Promise<Map<string, number>> {
  type Row = { readonly org_id: string; readonly credits_micro: number };
  const sql = "SELECT org_id, credits_micro FROM balances";
  const rows = await control<Row[]>("rows", { sql, values: [] });
  return new Map(rows.map((row) => [row.org_id, row.credits_micro]));
}

/** Counts what a region does while there is nothing to do, and what it has kept. */
export async function residueOf(region: SoakedRegion, keys: number): Promise<Residue> {
  const { miniflare, name, control } = region;
  type Counts = { readonly alarms: number };
  const before = await control<Counts>("counts");
  await sleep(QUIET_MS);
  const after = await control<Counts>("counts");
  const count = async (kind: string): Promise<number> =>
    (await miniflare.listDurableObjectIds(kind, `turnpike-${name}`)).length;
  const [registers, wallets, outboxes] = [
    await count("KeyRegister"),
    await count("Wallet"),
    await count("RegionOutbox"),
  ];
  const alarms = after.alarms - before.alarms;
  return { region: name, alarms, objects: wallets + outboxes, registers, keys };
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
  return atOnce(
    READERS,
    tenants.map((tenant) => async (): Promise<Estate> => {
      const { orgId, home, credited } = tenant;
      const { admin } = regions[home];
      const ledger = await ledgerOf(regions[home], orgId);
      const { differences } = await postReconcile(admin, orgId);
      const { credits_micro, held_micro, open_holds } = await getOrganization(admin, orgId);
      return {
        orgId,
        balance: credits_micro ?? NaN,
        openHolds: open_holds ?? NaN,
        held: held_micro ?? NaN,
        ledger,
        credited: [...credited.values()].reduce((sum, amount) => sum + amount, 0),
        book: books[home].get(orgId) ?? null,
        differences: differences.map(
          ({ what, expected, found }) => `${what}: expected ${expected}, found ${found}`,
        ),
        endUsers: tenant.role === "users" ? await endUsersOf(regions[home], orgId) : [],
      };
    }),
  );
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

/** As the region's D1 has them, with what the wallet's usage report charges each with. */
async function endUsersOf({ admin, control }: SoakedRegion, orgId: string) {
  const sql = `SELECT external_id, daily_quota_micro, monthly_quota_micro, daily_spend_micro,
    monthly_spend_micro, day FROM end_users WHERE org_id = ?`;
  type Row = Record<string, string | number | null>;
  const results = await control<Row[]>("rows", { sql, values: [orgId] });
  const days = { from: undefined, to: undefined, group_by: "user" };
  const usage = await getUsage(admin, orgId, days);
  const hasOneDay = new Set(results.map((row) => row["day"])).size === 1;
  return results.map((row): EndUser => {
    const externalId = String(row["external_id"]);
    const cost = usage.data.find(({ group }) => group === externalId)?.cost_micro ?? 0;
    return {
      externalId,
      dailyQuota: numberOrNull(row["daily_quota_micro"]),
      monthlyQuota: numberOrNull(row["monthly_quota_micro"]),
      dailySpend: Number(row["daily_spend_micro"]),
      monthlySpend: Number(row["monthly_spend_micro"]),
      usageCost: hasOneDay ? cost : null,
    };
  });
}

function numberOrNull(value: string | number | null | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/** What registers and wallets have stored of each key and each organisation. */
export async function logsOf(
  { regions, times }: World,
  tenants: readonly Tenant[],
): Promise<{ readonly registers: readonly RegisterLog[]; readonly grants: readonly GrantLog[] }> {
  const logs = REGIONS.map(async (home) => {
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
      const { granted = [], expired = [] } = wallets[i] ?? {};
      // a hold lives longer where the peer runs its request
      const ended = expired.map(({ at, lifeMs }) => {
        return { grantedMs: at, ranIn: lifeMs === times.peerHoldS * 1000 ? away : home };
      });
      return { orgId, limit, granted, expired: ended };
    });
    return { registers, grants };
  });
  const both = await Promise.all(logs);
  return {
    registers: both
      .flatMap(({ registers }) => registers)
      .filter(({ admissions }) => admissions.length > 0),
    grants: both.flatMap(({ grants }) => grants),
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
export function keysOf({ control }: SoakedRegion): Promise<KeyRow[]> {
  return control("rows", { sql: "SELECT id, hash, rpm_limit FROM keys", values: [] });
}
