import { setTimeout as sleep } from "node:timers/promises";
import { killRegion } from "../kill-region.ts";
import { workerdPid } from "../workerd.ts";
import { clockMs } from "./client.ts";
import type { PlannedFault } from "./plan.ts";
import type { Revoking } from "./revoking.ts";
import type { Restart } from "./trace.ts";
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
  readonly restarts: Restart[] = [];
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
    const region = this.#world.regions[fault.region];
    switch (fault.what) {
      case "abort": {
        const { aborted } = await region.control<{ aborted: number }>("abort", fault.share);
        this.done.aborted += aborted;
        return;
      }
      case "book":
        await region.control("book", { mode: fault.mode });
        this.done.bookOutages++;
        await this.#pause(fault.forMs);
        await region.control("book", { mode: "none" });
        return;
      case "link":
        this.done.linkCuts++;
        await region.line.set(fault.fault);
        await this.#pause(fault.forMs);
        await region.line.set("pass");
        return;
      case "kill":
        return this.#kill(fault);
      case "cron":
        await region.control("cron"); // miniflare's own handle blocks this process for ever when the region dies
        this.done.crons++;
        return;
      case "revoke":
        return this.#revoking.one(fault, stop);
    }
  }

  async #kill({ region: name }: PlannedFault): Promise<void> {
    const region = this.#world.regions[name];
    const pid = workerdPid(region.port);
    const fromMs = clockMs();
    const restart = { region: name, fromMs, untilMs: Infinity };
    this.restarts.push(restart);
    this.done.kills++;
    try {
      await killRegion(region, pid);
    } finally {
      restart.untilMs = clockMs();
    }
  }

  /** Ends at once when the faults are to end. */
  async #pause(ms: number): Promise<void> {
    await sleep(Math.max(0, ms), undefined, { signal: this.#quick.signal }).catch(() => undefined);
  }
}
