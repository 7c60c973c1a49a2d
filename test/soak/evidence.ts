import { setTimeout as sleep } from "node:timers/promises";
import { callAdmin, postReconcile } from "../../scripts/admin-client.ts";
import type { AdminAnswer } from "../../scripts/admin-client.ts";
import { mapConcurrently } from "../../src/shared/map-concurrently.ts";
import { clockMs } from "../../scripts/exchange.ts";
import type { Tenant } from "./tenants.ts";
import { sumOf } from "./trace.ts";
import type { Estate, Evidence, LedgerRow, Stored } from "./trace.ts";
import { REGIONS } from "./regions.ts";
import type { SoakedRegion, SoakRegions } from "./regions.ts";

const POLL_MS = 1000;
/** Polls between two progress lines. */
const TOLD_EVERY = 5;
/** Added to the life of a hold, because a quiet wallet publishes every three minutes. */
const SLACK_MS = 210_000;
const READERS = 4;
const PAGE = 1000;
const NAMES_AT_ONCE = 200;

/**
 * Data of a wallet, read without the gateway, or null if the wallet was never created. Has only
 * `open` unless detailed.
 */
type WalletLook = {
  readonly open: number;
  /** Times of granted requests, Unix ms. */
  readonly granted: readonly number[];
  /** Admission times of this home region's keys by hash, Unix ms, oldest first. */
  readonly admissions: Readonly<Record<string, readonly number[]>>;
} | null;

function tenantsAt({ name }: SoakedRegion, tenants: readonly Tenant[]): readonly Tenant[] {
  return tenants.filter(({ home }) => home === name);
}

/** Reads the stored data of a region's wallets. Throws while the region is down. */
function walletsAt(
  region: SoakedRegion,
  tenants: readonly Tenant[],
  detailed = false,
): Promise<readonly WalletLook[]> {
  const names = tenantsAt(region, tenants).map(({ orgId }) => orgId);
  return region.control("look", { kind: "WALLET", names, detailed });
}

/** The time until recovery, and the pending work at its end ("" for none). */
export type Healed = { readonly tookMs: number; readonly waitingFor: string };

/**
 * Waits until the regions have recovered: outboxes are empty, no hold is open and every database is
 * current. Gives up after a time, because the invariants report the rest.
 */
export async function quiet(
  soakRegions: SoakRegions,
  tenants: readonly Tenant[],
  progress: (line: string) => void,
): Promise<Healed> {
  const fromMs = clockMs();
  const untilMs = fromMs + soakRegions.times.peerHoldS * 1000 + SLACK_MS;
  for (let poll = 0; ; poll++) {
    const waitingFor = await Promise.all(
      REGIONS.map((name) => unrestIn(soakRegions.regions[name], tenants)),
    ).then(
      (all) => all.filter((part) => part !== "").join(", "),
      (error: unknown) => String(error),
    );
    if (waitingFor === "" || clockMs() > untilMs) return { tookMs: clockMs() - fromMs, waitingFor };
    if (poll % TOLD_EVERY === 0) progress(`waiting for ${waitingFor}`);
    await sleep(POLL_MS);
  }
}

async function unrestIn(region: SoakedRegion, tenants: readonly Tenant[]): Promise<string> {
  const { admin, name } = region;
  const { waiting } = await outboxOf(region);
  const open = sumOf(await walletsAt(region, tenants), (wallet) => wallet?.open ?? 0);
  if (waiting + open > 0) return `${waiting} messages and ${open} holds in ${name}`;
  const books = new Map((await booksOf(region)).map((row) => [row.org_id, row.credits_micro]));
  const wallets = await mapConcurrently(READERS, tenantsAt(region, tenants), ({ orgId }) =>
    callAdmin(admin, "GET /orgs/{id}", { ids: [orgId] }),
  );
  const behind = wallets.filter(({ id, credits_micro }) => books.get(id) !== credits_micro);
  return behind.length > 0 ? `${behind.length} books in ${name}` : "";
}

/**
 * Returns the number of messages in a region's outboxes. An outbox that doesn't respond counts as
 * one message.
 */
async function outboxOf({ admin, name }: SoakedRegion): Promise<Evidence["outboxes"][number]> {
  const { outboxes } = await callAdmin(admin, "GET /health");
  const sum = (of: "waiting" | "dead" | "parked") => sumOf(outboxes, (one) => one[of] ?? 1);
  return { region: name, waiting: sum("waiting"), dead: sum("dead"), parked: sum("parked") };
}

type Balance = { readonly org_id: string; readonly credits_micro: number };

/** Returns the balances in a region's D1 in micro-credits, read without the gateway. */
function booksOf({ control }: SoakedRegion): Promise<readonly Balance[]> {
  return control("rows", { sql: "SELECT org_id, credits_micro FROM balances", values: [] });
}

/**
 * Reads every organization and outbox, and the stored data of key objects and wallets, after the
 * regions have recovered.
 */
export async function readAll(
  { regions }: SoakRegions,
  tenants: readonly Tenant[],
): Promise<Pick<Evidence, "estates" | "outboxes" | "stored">> {
  const each = <T>(of: (region: SoakedRegion) => Promise<T>): Promise<T[]> =>
    Promise.all(REGIONS.map((name) => of(regions[name])));
  const books = new Map((await each(booksOf)).flat().map((row) => [row.org_id, row.credits_micro]));
  const estates = await mapConcurrently(READERS, tenants, (one) =>
    estateOf(regions[one.home], one, books),
  );
  const outboxes = await each(outboxOf);
  const stored = (await each((home) => storedOf(home, regions, tenants))).flat();
  return { estates, outboxes, stored };
}

async function estateOf(
  { admin }: SoakedRegion,
  { orgId, credited }: Tenant,
  books: ReadonlyMap<string, number>,
): Promise<Estate> {
  const ledger: LedgerRow[] = [];
  for (let after_seq: number | null = 0; after_seq !== null;) {
    const args = { ids: [orgId], query: { after_seq, limit: PAGE } };
    const page: AdminAnswer<"GET /orgs/{id}/ledger"> = await callAdmin(
      admin,
      "GET /orgs/{id}/ledger",
      args,
    );
    ledger.push(...page.rows);
    after_seq = page.rows.length < PAGE ? null : page.next_after_seq;
  }
  const { differences } = await postReconcile(admin, orgId);
  const now = await callAdmin(admin, "GET /orgs/{id}", { ids: [orgId] });
  return {
    orgId,
    balance: now.credits_micro ?? NaN,
    openHolds: now.open_holds ?? NaN,
    held: now.held_micro ?? NaN,
    ledger,
    credited: sumOf([...credited.values()], (amount) => amount),
    book: books.get(orgId) ?? null,
    differences: differences.map(
      ({ what, expected, found }) => `${what}: expected ${expected}, found ${found}`,
    ),
  };
}

/** Returns stored data of a home region's keys and organizations, from both regions. */
async function storedOf(
  home: SoakedRegion,
  regions: SoakRegions["regions"],
  tenants: readonly Tenant[],
): Promise<Stored[]> {
  type Key = { readonly id: string; readonly hash: string; readonly rpm_limit: number };
  type Look = { readonly admissions: readonly number[] } | null;
  const away = regions[home.name === "eu" ? "us" : "eu"];
  const sql = "SELECT id, hash, rpm_limit FROM keys"; // responses never include a hash
  const keys = await home.control<readonly Key[]>("rows", { sql, values: [] });
  const wallets = await walletsAt(home, tenants, true);
  const atHome = new Map(wallets.flatMap((look) => Object.entries(look?.admissions ?? {})));
  const looks: Look[] = [];
  for (let from = 0; from < keys.length; from += NAMES_AT_ONCE) {
    const names = keys.slice(from, from + NAMES_AT_ONCE).map(({ hash }) => hash);
    const lookup = { kind: "KEY_REGISTER", names, detailed: true };
    looks.push(...(await away.control<readonly Look[]>("look", lookup)));
  }
  const ofKeys = keys.flatMap(({ id: keyId, hash, rpm_limit: limit }, i) => {
    const of = ({ name: region }: SoakedRegion, at: readonly number[] = []): Stored => {
      return { key: { keyId, region }, whose: `key ${keyId} in ${region}`, limit, at };
    };
    return [of(home, atHome.get(hash)), of(away, looks[i]?.admissions)];
  });
  const ofOrganizations = tenantsAt(home, tenants).flatMap(({ orgId: whose, limit }, i): Stored[] =>
    limit === null ? [] : [{ key: null, whose, limit, at: wallets[i]?.granted ?? [] }],
  );
  return [...ofKeys.filter(({ at }) => at.length > 0), ...ofOrganizations];
}
