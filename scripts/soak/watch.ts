import { setTimeout as sleep } from "node:timers/promises";
import { getHealth, getBalances, postCredits } from "../admin-client.ts";
import type { PairName } from "../region-names.ts";
import { residentBytes, workerdPid } from "../workerd.ts";
import { walletsAt } from "./evidence.ts";
import type { MemorySample } from "./judge-limits.ts";
import type { Depth, Reading } from "./judge-money.ts";
import { persist, TOP_UP_MICRO } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import { clockMs, mostOf, sumOf } from "./trace.ts";
import { REGIONS } from "./world.ts";
import type { World } from "./world.ts";

/** Memory is measured so many times in a run, at most every three seconds. */
const MEMORY_SAMPLES = 60;
const MEMORY_EVERY_MS = 3000;
const LOOK_EVERY_MS = 4000;
const TOP_UP_EVERY_MS = 7000;
const ORGANIZATIONS_MAX = 100;

/** Looks at both regions while the load runs, and grants credits to those that run dry. */
export class Watch {
  readonly readings: Reading[] = [];
  readonly depths: Depth[] = [];
  readonly memory: MemorySample[] = [];
  #topUps = 0;
  readonly #world: World;
  readonly #tenants: readonly Tenant[];
  readonly #pids: Partial<Record<PairName, number>> = {};

  constructor(world: World, tenants: readonly Tenant[]) {
    this.#world = world;
    this.#tenants = tenants;
  }

  async run(durationMs: number, stop: AbortSignal): Promise<void> {
    const memoryEveryMs = Math.min(MEMORY_EVERY_MS, durationMs / MEMORY_SAMPLES);
    await Promise.all([
      ...REGIONS.map((name) => repeat(memoryEveryMs, stop, () => this.#measure(name))),
      repeat(LOOK_EVERY_MS, stop, () => this.#look()),
      repeat(TOP_UP_EVERY_MS, stop, () => this.#topUp()),
    ]);
  }

  /** The collection logs what is left of the heap. */
  async #measure(region: PairName): Promise<void> {
    const { control, port } = this.#world.regions[region];
    try {
      await control("collect");
      const pid = (this.#pids[region] ??= workerdPid(port)); // to look for it takes milliseconds
      const bytes = residentBytes(pid);
      this.memory.push({ what: "process", region, pid, atMs: clockMs(), bytes });
    } catch {
      delete this.#pids[region]; // between two lives
    }
  }

  async #look(): Promise<void> {
    const regions = REGIONS.map((name) => this.#world.regions[name]);
    const balances = regions.map(async ({ admin }) => {
      const page = await getBalances(admin, { limit: ORGANIZATIONS_MAX }).catch(() => null); // no book
      for (const { id, credits_micro, held_micro } of page?.organizations ?? []) {
        if (credits_micro === null || held_micro === null) continue;
        this.readings.push({ orgId: id, balance: credits_micro, held: held_micro });
      }
    });
    const [wallets, healths] = await Promise.all([
      Promise.all(regions.map((region) => walletsAt(region, this.#tenants))),
      Promise.all(regions.map(({ admin }) => getHealth(admin))),
      ...balances,
    ]);
    const known = wallets.flat().filter((wallet) => wallet !== null);
    const outboxes = healths.flatMap((health) => health.outboxes);
    this.depths.push({
      openHolds: sumOf(known, ({ open }) => open),
      oldestHoldMs: mostOf(known, ({ oldestMs }) => oldestMs ?? 0),
      waiting: sumOf(outboxes, ({ waiting }) => waiting ?? 0),
      oldestMessageMs: mostOf(outboxes, ({ oldest_ms }) => oldest_ms ?? 0),
    });
  }

  /** The same reference until it is answered, also when the load is over: granted once, and known. */
  async #topUp(): Promise<void> {
    const reference = `top-up ${++this.#topUps}`;
    const credit = { amount_micro: TOP_UP_MICRO, reference };
    const dry = this.#tenants.filter(({ role }) => role === "dry");
    const granted = dry.map(async ({ orgId, home, credited }) => {
      const { admin } = this.#world.regions[home];
      if ((await persist(() => postCredits(admin, orgId, credit))) === null) {
        throw new Error(`${reference} of ${orgId} was never answered`);
      }
      credited.set(reference, TOP_UP_MICRO);
    });
    await Promise.all(granted);
  }
}

async function repeat(
  everyMs: number,
  stop: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  while (!stop.aborted) {
    await work().catch(() => undefined); // a region may be away: the next time it will be there
    await sleep(everyMs, undefined, { signal: stop }).catch(() => undefined);
  }
}
