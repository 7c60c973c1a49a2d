import { setTimeout as sleep } from "node:timers/promises";
import { deleteKey, postMemberKey } from "../admin-client.ts";
import { killRegion } from "../kill-region.ts";
import { workerdPid } from "../workerd.ts";
import type { PairName } from "../region-names.ts";
import type { Revocation } from "./judge-limits.ts";
import { PLAIN, unplanned } from "./plan.ts";
import type { PlannedFault } from "./plan.ts";
import { persist } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import { clockMs } from "./trace.ts";
import type { FaultWindow } from "./trace.ts";
import type { Traffic } from "./traffic.ts";
import { REGIONS } from "./world.ts";
import type { World } from "./world.ts";

/** How often each fault was really done; `aborted`: objects that lost their memory and their calls; `missed`: what could not be done, because the region was just being restarted. */
export type Done = Record<
  "aborted" | "bookOutages" | "linkCuts" | "kills" | "crons" | "missed",
  number
>;

const RPM = 200;
/** When a dead key is tried again, in ms after its DELETE was answered. */
const AGAIN_MS = [0, 20, 300, 1500, 6000, 15_000];

/** Does what is planned at its time: one fault does not wait for another. */
export class Faults {
  /** Every fault, whose end is Infinity while it is on. */
  readonly windows: FaultWindow[] = [];
  readonly revocations = new Map<string, Revocation>();
  readonly done: Done = { aborted: 0, bookOutages: 0, linkCuts: 0, kills: 0, crons: 0, missed: 0 };
  readonly #world: World;
  readonly #tenants: readonly Tenant[];
  readonly #traffic: Traffic;
  readonly #underWay = new Set<Promise<void>>();
  readonly #quick = new AbortController();
  #keys = 0;

  constructor(world: World, tenants: readonly Tenant[], traffic: Traffic) {
    this.#world = world;
    this.#tenants = tenants.filter(({ role }) => role === "any");
    this.#traffic = traffic;
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
    const { what, some } = fault;
    const region = this.#world.regions[fault.region];
    if (what === "revoke") return this.#revoke(some, stop);
    if (what === "cron") {
      await region.control("cron"); // miniflare's own handle blocks this process for ever when the region dies
      this.done.crons++;
      return;
    }
    const window = { what, region: fault.region, fromMs: clockMs(), untilMs: Infinity };
    this.windows.push(window);
    try {
      await this.#broken({ ...fault, what });
    } finally {
      window.untilMs = clockMs();
    }
  }

  /** Breaks what the fault says, until it is whole again. */
  async #broken({ what, region: name, mode, forMs, some }: PlannedFault): Promise<void> {
    const { control, line, ...region } = this.#world.regions[name];
    if (what === "abort") {
      const share = { from: Math.floor(some * 3), each: 3 };
      this.done.aborted += (await control<{ aborted: number }>("abort", share)).aborted;
    } else if (what === "kill") {
      this.done.kills++;
      await killRegion(region, workerdPid(region.port));
    } else if (what === "book") {
      await control("book", { mode });
      this.done.bookOutages++;
      await this.#pause(forMs);
      await control("book", { mode: "none" });
    } else {
      this.done.linkCuts++;
      await line.set(mode as Parameters<typeof line.set>[0]);
      await this.#pause(forMs);
      await line.set("pass");
    }
  }

  /**
   * One key from its making to long after its end: revoked while it is in use, then used at once in both regions. A
   * region that is away for too long ends it early.
   */
  async #revoke(some: number, stop: AbortSignal): Promise<void> {
    const tenant = anyOf(this.#tenants);
    const scope = some < 0.7 ? "global" : "regional";
    const { orgId, home } = tenant;
    const { admin } = this.#world.regions[home];
    const wish = { name: `doomed ${++this.#keys}`, scope, rpm_limit: RPM } as const;
    const key = await persist(() => postMemberKey(admin, tenant, wish), stop);
    if (key === null) return;
    const places: readonly PairName[] = scope === "global" ? REGIONS : [home];
    const use = () =>
      Promise.all(
        places.map((region) =>
          this.#traffic.request(unplanned(anyOf(PLAIN)), { region, tenant, key }),
        ),
      );
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

  /** Ends at once when the faults are to end. */
  async #pause(ms: number): Promise<void> {
    await sleep(Math.max(0, ms), undefined, { signal: this.#quick.signal }).catch(() => undefined);
  }
}

function anyOf<T>(all: readonly T[]): T {
  const one = all[Math.floor(Math.random() * all.length)];
  if (one === undefined) throw new Error("nothing to choose from");
  return one;
}
