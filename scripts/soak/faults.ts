import { setTimeout as sleep } from "node:timers/promises";
import { deleteKey, postMemberKey } from "../admin-client.ts";
import { killRegion } from "../kill-region.ts";
import type { PairName } from "../region-names.ts";
import { workerdPid } from "../workerd.ts";
import { clockMs } from "./client.ts";
import type { Revocation } from "./judge-limits.ts";
import { PLAIN, unplanned } from "./plan.ts";
import type { PlannedFault } from "./plan.ts";
import { persist } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import type { FaultWindow } from "./trace.ts";
import type { Traffic } from "./traffic.ts";
import { REGIONS } from "./world.ts";
import type { World } from "./world.ts";

/** How often each fault was really done. */
export type Done = {
  /** Objects that lost their memory and their calls. */
  aborted: number;
  bookOutages: number;
  linkCuts: number;
  kills: number;
  crons: number;
  /** What could not be done, for instance because the region was just being restarted. */
  missed: number;
};

/** Does what is planned at its time: one fault does not wait for another. */
export class Faults {
  /** Every fault, whose end is Infinity while it is on. */
  readonly windows: FaultWindow[] = [];
  readonly done: Done = { aborted: 0, bookOutages: 0, linkCuts: 0, kills: 0, crons: 0, missed: 0 };
  readonly #world: World;
  readonly #revoking: Revoking;
  readonly #underWay = new Set<Promise<void>>();
  readonly #quick = new AbortController();

  constructor(world: World, revoking: Revoking) {
    this.#world = world;
    this.#revoking = revoking;
  }

  async run(plan: readonly PlannedFault[], startedMs: number, stop: AbortSignal): Promise<void> {
    stop.addEventListener("abort", () => this.#quick.abort(), { once: true });
    for (const fault of plan) {
      await this.#pause(startedMs + fault.atMs - clockMs());
      if (stop.aborted) return;
      const work = this.#strike(fault, stop).catch(() => {
        this.done.missed++;
      });
      this.#underWay.add(work);
      void work.finally(() => this.#underWay.delete(work));
    }
  }

  /** Ends every fault that is still on, and waits until those that are under way have ended. */
  async heal(): Promise<void> {
    this.#quick.abort();
    await Promise.all(this.#underWay);
    for (const name of REGIONS) {
      const { line, control } = this.#world.regions[name];
      await line.set("pass");
      await control("book", { mode: "none" });
    }
  }

  async #strike(fault: PlannedFault, stop: AbortSignal): Promise<void> {
    const { control, line, ...region } = this.#world.regions[fault.region];
    if (fault.what === "revoke") return this.#revoking.one(fault, stop);
    if (fault.what === "cron") {
      await control("cron"); // miniflare's own handle blocks this process for ever when the region dies
      this.done.crons++;
      return;
    }
    const window = { what: fault.what, region: fault.region, fromMs: clockMs(), untilMs: Infinity };
    this.windows.push(window);
    try {
      switch (fault.what) {
        case "abort":
          this.done.aborted += (await control<{ aborted: number }>("abort", fault.share)).aborted;
          break;
        case "book":
          await control("book", { mode: fault.mode });
          this.done.bookOutages++;
          await this.#pause(fault.forMs);
          await control("book", { mode: "none" });
          break;
        case "link":
          this.done.linkCuts++;
          await line.set(fault.fault);
          await this.#pause(fault.forMs);
          await line.set("pass");
          break;
        case "kill":
          this.done.kills++;
          await killRegion(region, workerdPid(region.port));
          break;
      }
    } finally {
      window.untilMs = clockMs();
    }
  }

  /** Ends at once when the faults are to end. */
  async #pause(ms: number): Promise<void> {
    await sleep(Math.max(0, ms), undefined, { signal: this.#quick.signal }).catch(() => undefined);
  }
}

const RPM = 200;
/** When a dead key is tried again, in ms after its DELETE was answered. */
const AGAIN_MS = [0, 20, 300, 1500, 6000, 15_000];

/** Makes keys, uses them, and revokes them while they are in use: then they are used at once in both regions. */
export class Revoking {
  readonly revocations = new Map<string, Revocation>();
  #made = 0;
  readonly #world: World;
  readonly #tenants: readonly Tenant[];
  readonly #traffic: Traffic;

  constructor(world: World, tenants: readonly Tenant[], traffic: Traffic) {
    this.#world = world;
    this.#tenants = tenants.filter(({ role }) => role === "any");
    this.#traffic = traffic;
  }

  /** One key from its making to long after its end. A region that is away for too long ends it early. */
  async one(fault: Extract<PlannedFault, { what: "revoke" }>, stop: AbortSignal): Promise<void> {
    const tenant = this.#tenants[Math.floor(fault.which * this.#tenants.length)];
    if (tenant === undefined) throw new Error("no organisation to revoke a key of");
    const { orgId } = tenant;
    const { admin } = this.#world.regions[tenant.home];
    const wish = { name: `doomed ${++this.#made}`, scope: fault.scope, rpm_limit: RPM };
    const key = await persist(() => postMemberKey(admin, tenant, wish), stop);
    if (key === null) return;
    const places = fault.scope === "global" ? (["eu", "us"] as const) : [tenant.home];
    const useIn = (region: PairName) =>
      this.#traffic.request(unplanned(anyOf(PLAIN)), { region, tenant, key });
    const use = () => Promise.all(places.map(useIn));
    await use();
    const uses = [use(), use()]; // still under way while the key dies
    const deletingMs = clockMs();
    this.revocations.set(key.id, { deletingMs, deletedMs: null });
    if ((await persist(() => deleteKey(admin, { orgId, keyId: key.id }), stop)) !== null) {
      const deletedMs = clockMs();
      this.revocations.set(key.id, { deletingMs, deletedMs });
      for (const afterMs of AGAIN_MS) {
        await sleep(Math.max(0, deletedMs + afterMs - clockMs()));
        if (stop.aborted) break;
        await use();
      }
    }
    await Promise.all(uses);
  }
}

function anyOf<T>(all: readonly [T, ...T[]]): T {
  return all[Math.floor(Math.random() * all.length)] ?? all[0];
}
