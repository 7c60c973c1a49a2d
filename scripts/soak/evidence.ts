import { getLedger, getOrganization, getUsage, postReconcile } from "../admin-client.ts";
import { atOnce } from "../at-once.ts";
import type { GrantLog, RegisterLog } from "./judge-keys.ts";
import type { EndUser, Estate, LedgerRow } from "./judge-money.ts";
import { booksOf } from "./healing.ts";
import type { Tenant } from "./tenants.ts";
import { tenantsAt, walletsAt } from "./wallets.ts";
import { REGIONS } from "./world.ts";
import type { SoakedRegion, World } from "./world.ts";

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

/** What has been stored of each key's admissions, in both regions: by wallets at home, by registers away. */
export async function registerLogsOf(
  { regions }: World,
  tenants: readonly Tenant[],
): Promise<readonly RegisterLog[]> {
  const homes = REGIONS.map(async (home) => {
    const keys = await keysOf(regions[home]);
    const wallets = await walletsAt(regions[home], tenants, true);
    const atHome = new Map(wallets.flatMap((look) => Object.entries(look?.admissions ?? {})));
    const away = home === "eu" ? "us" : "eu";
    const looks = await looksAt(regions[away], keys);
    return keys.flatMap(({ id: keyId, hash, rpm_limit: limit }, i): RegisterLog[] => [
      { keyId, region: home, limit, admissions: atHome.get(hash) ?? [] },
      { keyId, region: away, limit, admissions: looks[i]?.admissions ?? [] },
    ]);
  });
  const logs = (await Promise.all(homes)).flat();
  return logs.filter(({ admissions }) => admissions.length > 0);
}

type RegisterLook = { readonly admissions: readonly number[] } | null;

async function looksAt(region: SoakedRegion, keys: readonly KeyRow[]): Promise<RegisterLook[]> {
  const looks: RegisterLook[] = [];
  for (let at = 0; at < keys.length; at += NAMES_AT_ONCE) {
    const names = keys.slice(at, at + NAMES_AT_ONCE).map(({ hash }) => hash);
    const asked = { kind: "KEY_REGISTER", names, detailed: true };
    looks.push(...(await region.control<RegisterLook[]>("look", asked)));
  }
  return looks;
}

type KeyRow = { readonly id: string; readonly hash: string; readonly rpm_limit: number };

/** The keys of a region's book: past the gateway, because nobody is ever told a hash. */
export function keysOf({ control }: SoakedRegion): Promise<KeyRow[]> {
  return control("rows", { sql: "SELECT id, hash, rpm_limit FROM keys", values: [] });
}

/** What every wallet has stored of its requests. */
export async function grantLogsOf(
  { regions, times }: World,
  tenants: readonly Tenant[],
): Promise<readonly GrantLog[]> {
  const logs = REGIONS.map(async (name) => {
    const peer = name === "eu" ? "us" : "eu";
    const looks = await walletsAt(regions[name], tenants, true);
    return tenantsAt(regions[name], tenants).map(({ orgId, limit }, i): GrantLog => {
      const { granted = [], expired = [] } = looks[i] ?? {};
      return {
        orgId,
        limit,
        granted,
        // a hold lives longer where the peer runs its request
        expired: expired.map(({ at, lifeMs }) => {
          return { grantedMs: at, ranIn: lifeMs === times.peerHoldS * 1000 ? peer : name };
        }),
      };
    });
  });
  return (await Promise.all(logs)).flat();
}
