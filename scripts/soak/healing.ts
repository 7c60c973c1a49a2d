import { setTimeout as sleep } from "node:timers/promises";
import { getHealth, getOrganization } from "../admin-client.ts";
import { clockMs } from "./client.ts";
import type { OutboxDepth, Residue } from "./judge-rest.ts";
import type { Tenant } from "./tenants.ts";
import { tenantsAt, walletsAt } from "./wallets.ts";
import { REGIONS } from "./world.ts";
import type { SoakedRegion, World } from "./world.ts";

const POLL_MS = 1000;
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
  progress: (waitingFor: string) => void,
): Promise<Healed> {
  const fromMs = clockMs();
  const untilMs = fromMs + world.times.peerHoldS * 1000 + SLACK_MS;
  for (;;) {
    const waitingFor = await unrest(world, tenants).catch((error: unknown) => String(error));
    const tookMs = clockMs() - fromMs;
    if (waitingFor === "") return { isQuiet: true, tookMs, waitingFor };
    if (clockMs() > untilMs) return { isQuiet: false, tookMs, waitingFor };
    progress(waitingFor);
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
export async function booksOf({ control }: SoakedRegion): Promise<Map<string, number>> {
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
