import { setTimeout as sleep } from "node:timers/promises";
import { callAdmin, postMemberKey } from "../../scripts/admin-client.ts";
import { clockMs, startOnTime } from "../../scripts/exchange.ts";
import { killRegion } from "../node/support/kill-region.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { workerdPid } from "../../scripts/workerd.ts";
import { PLAIN, unplanned } from "./plan.ts";
import type { PlannedFault } from "./plan.ts";
import { persist } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import type { Done, FaultWindow } from "./trace.ts";
import { at } from "./traffic.ts";
import type { Traffic } from "./traffic.ts";
import { REGIONS } from "./regions.ts";
import type { SoakRegions } from "./regions.ts";

const RPM = 200;
/** When a revoked key is tried again, in ms after the response to its DELETE. */
const AGAIN_MS = [0, 20, 300, 1500, 6000, 15_000];

/** Applies planned faults on time, without waiting for earlier ones. */
export class Faults {
  /** All faults. `untilMs` is Infinity until a fault has ended. */
  readonly windows: (FaultWindow & { untilMs: number })[] = [];
  /** The time of the response to each revoked key's DELETE, or null before it. */
  readonly revocations = new Map<string, number | null>();
  readonly done: Done = {
    aborts: 0,
    "book outages": 0,
    "link cuts": 0,
    kills: 0,
    crons: 0,
    missed: 0,
  };
  readonly #soakRegions: SoakRegions;
  readonly #tenants: readonly Tenant[];
  readonly #traffic: Traffic;
  readonly #underWay: Promise<void>[] = [];
  readonly #healing = new AbortController();

  constructor(soakRegions: SoakRegions, tenants: readonly Tenant[], traffic: Traffic) {
    this.#soakRegions = soakRegions;
    this.#tenants = tenants.filter(({ role }) => role === "any");
    this.#traffic = traffic;
  }

  run(plan: readonly PlannedFault[], startedMs: number, stop: AbortSignal): Promise<void> {
    const begin = (fault: PlannedFault): void => {
      const missed = (): void => void this.done.missed++;
      this.#underWay.push(this.#strike(fault, stop).catch(missed));
    };
    return startOnTime(plan, begin, { startedMs, stop });
  }

  /** Ends every fault and waits for running ones. */
  async heal(): Promise<void> {
    this.#healing.abort();
    await Promise.all(this.#underWay);
    for (const name of REGIONS) {
      const { line, control } = this.#soakRegions.regions[name];
      await line.set("pass");
      await control("book", { mode: "none" });
    }
  }

  async #strike(fault: PlannedFault, stop: AbortSignal): Promise<void> {
    const { what, some } = fault;
    if (what === "revoke") return this.#revoke(some, stop);
    if (what === "cron") {
      // miniflare's own handle blocks this process forever if the region stops
      await this.#soakRegions.regions[fault.region].control("cron");
      this.done.crons++;
      return;
    }
    const window = { what, region: fault.region, fromMs: clockMs(), untilMs: Infinity };
    this.windows.push(window);
    try {
      await this.#break({ ...fault, what });
    } finally {
      window.untilMs = clockMs();
    }
  }

  /** Applies a fault until its end. */
  async #break({ what, region: name, mode, forMs, some }: PlannedFault): Promise<void> {
    const { control, line, ...region } = this.#soakRegions.regions[name];
    const { signal } = this.#healing;
    const pause = (): Promise<void> => sleep(forMs, undefined, { signal }).catch(() => undefined);
    if (what === "abort") {
      const share = { from: Math.floor(some * 3), each: 3 };
      this.done.aborts += (await control<{ aborted: number }>("abort", share)).aborted;
    } else if (what === "kill") {
      this.done.kills++;
      await killRegion(region, workerdPid(region.port));
    } else if (what === "book") {
      await control("book", { mode });
      this.done["book outages"]++;
      await pause();
      await control("book", { mode: "none" });
    } else {
      this.done["link cuts"]++;
      await line.set(mode as Parameters<typeof line.set>[0]);
      await pause();
      await line.set("pass");
    }
  }

  /**
   * Creates, uses and revokes a key, then immediately uses it in both regions. A long outage ends
   * it early.
   */
  async #revoke(some: number, stop: AbortSignal): Promise<void> {
    const tenant = at(this.#tenants, Math.random());
    const scope = some < 0.7 ? "global" : "regional";
    const { orgId, home } = tenant;
    const { admin } = this.#soakRegions.regions[home];
    const keyRequest = { name: `doomed ${this.revocations.size}`, scope, rpm_limit: RPM } as const;
    const key = await persist(() => postMemberKey(admin, tenant, keyRequest), stop);
    if (key === null) return;
    const places: readonly PairName[] = scope === "global" ? REGIONS : [home];
    const useIn = (region: PairName): Promise<void> =>
      this.#traffic.request(unplanned(at(PLAIN, Math.random())), { region, tenant, key });
    const use = () => Promise.all(places.map(useIn));
    await use();
    const uses = [use(), use()]; // still pending while the key is revoked
    this.revocations.set(key.id, null);
    const ids = [orgId, key.id];
    const revoke = () => callAdmin(admin, "DELETE /orgs/{id}/keys/{key_id}", { ids });
    if ((await persist(revoke, stop)) !== null) {
      const deletedMs = clockMs();
      this.revocations.set(key.id, deletedMs);
      for (const afterMs of AGAIN_MS) {
        await sleep(Math.max(0, deletedMs + afterMs - clockMs()));
        if (stop.aborted) break;
        await use();
      }
    }
    await Promise.all(uses);
  }
}
