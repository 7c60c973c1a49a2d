import { workerdPid } from "../../../scripts/workerd.ts";
import type { Fault } from "../../fixtures/fault-matrix.ts";
import { killRegion } from "./kill-region.ts";
import type { FaultyRegions } from "./two-regions.ts";

const HOUR_MS = 3_600_000;
/** Longer than a hold from another region lasts. */
const AFTER_HOLDS_END_MS = 36 * 60_000;
const TABLES = [
  "balances",
  "end_users",
  "settings",
  "daily_usage",
  "alerts",
  "credits",
  "keys",
  "members",
  "organizations",
];

/** A fault of whole regions: its start, after which both proxies work, and its end. */
type Strike = {
  readonly strike: (regions: FaultyRegions) => Promise<void>;
  readonly heal: (regions: FaultyRegions) => Promise<void>;
};

export const FAULT_CAUSES: Readonly<Record<Fault, Strike>> = {
  "home's Durable Object evicted": {
    strike: async (regions) => {
      await lines(regions, "pass");
      await evictAll(regions);
    },
    heal: async () => {},
  },
  "home's Durable Object aborted": {
    strike: async (regions) => {
      const pid = workerdPid(regions.eu.port);
      await lines(regions, "refuse");
      await killRegion(regions.eu, pid);
      await lines(regions, "pass");
    },
    heal: async () => {},
  },
  "D1 down": {
    strike: async (regions) => {
      await lines(regions, "pass");
      await onDatabase(regions, (table) => `ALTER TABLE ${table} RENAME TO ${table}_away`);
    },
    heal: (regions) =>
      onDatabase(regions, (table) => `ALTER TABLE ${table}_away RENAME TO ${table}`),
  },
  "home region unreachable": {
    strike: (regions) => lines(regions, "refuse"),
    heal: (regions) => lines(regions, "pass"),
  },
  "messages duplicated and reordered": {
    strike: (regions) => lines(regions, { seed: 11, odds: { duplicate: 0.6, reorder: 0.4 } }),
    heal: (regions) => lines(regions, "pass"),
  },
  "clock 1 h ahead": clockOff(HOUR_MS),
  "clock 1 h behind": clockOff(0 - HOUR_MS),
  "executing Worker stops": {
    strike: async (regions) => {
      const pids = [workerdPid(regions.us.port), workerdPid(regions.eu.port)] as const;
      await Promise.all([killRegion(regions.us, pids[0]), killRegion(regions.eu, pids[1])]);
      await lines(regions, "pass");
    },
    heal: async (regions) => {
      const later = { CLOCK_OFFSET_MS: String(AFTER_HOLDS_END_MS) };
      await Promise.all([regions.restart("eu", later), regions.restart("us", later)]);
    },
  },
};

/** Changes the home region's clock. Calls during the restart fail. */
function clockOff(offsetMs: number): Strike {
  return {
    strike: async (regions) => {
      await lines(regions, "refuse");
      await regions.restart("eu", { CLOCK_OFFSET_MS: String(offsetMs) });
      await lines(regions, "pass");
    },
    heal: (regions) => regions.restart("eu"),
  };
}

async function lines(
  { toEu, toUs }: FaultyRegions,
  fault: Parameters<FaultyRegions["toEu"]["set"]>[0],
): Promise<void> {
  await Promise.all([toEu.set(fault), toUs.set(fault)]);
}

/** Evicts every object of the home region. */
async function evictAll({ eu }: FaultyRegions): Promise<void> {
  for (const kind of ["Wallet", "KeyRegister", "RegionOutbox"]) {
    const ids = await eu.miniflare.listDurableObjectIds(kind, "turnpike-eu");
    for (const id of ids) {
      await eu.miniflare.unsafeEvictDurableObject("turnpike-eu", kind, { id });
    }
  }
}

async function onDatabase({ eu }: FaultyRegions, statement: (table: string) => string) {
  const db = await eu.miniflare.getD1Database("DB", "turnpike-eu");
  await db.batch(TABLES.map((table) => db.prepare(statement(table))));
}
