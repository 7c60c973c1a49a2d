import { setTimeout as sleep } from "node:timers/promises";
import { getHealth, getBalances, postCredits } from "../admin-client.ts";
import type { PairName } from "../region-names.ts";
import { residentBytes, workerdPid } from "../workerd.ts";
import { clockMs } from "./client.ts";
import { walletsAt } from "./evidence.ts";
import type { MemorySample } from "./judge-limits.ts";
import type { Depth, Reading } from "./judge-money.ts";
import { persist, TOP_UP_MICRO } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import { REGIONS } from "./world.ts";
import type { SoakedRegion, World } from "./world.ts";

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
  topUps = 0;
  readonly #world: World;
  readonly #tenants: readonly Tenant[];
  readonly #memoryEveryMs: number;
  readonly #pids: Partial<Record<PairName, number>> = {};

  constructor(world: World, tenants: readonly Tenant[], durationMs: number) {
    this.#memoryEveryMs = Math.min(MEMORY_EVERY_MS, durationMs / MEMORY_SAMPLES);
    this.#world = world;
    this.#tenants = tenants;
  }

  async run(stop: AbortSignal): Promise<void> {
    await Promise.all([
      ...REGIONS.map((name) => repeat(this.#memoryEveryMs, stop, () => this.#measure(name))),
      repeat(LOOK_EVERY_MS, stop, () => this.#look()),
      repeat(TOP_UP_EVERY_MS, stop, () => this.#topUp()),
    ]);
  }

  /** The collection logs what is left of the heap. */
  async #measure(region: PairName): Promise<void> {
    const { control, port } = this.#world.regions[region];
    try {
      await control("collect");
      const pid = this.#pids[region] ?? workerdPid(port);
      this.#pids[region] = pid; // to look for it takes milliseconds
      this.memory.push({
        what: "process",
        region,
        pid,
        atMs: clockMs(),
        bytes: residentBytes(pid),
      });
    } catch {
      delete this.#pids[region]; // between two lives
    }
  }

  async #look(): Promise<void> {
    const regions = REGIONS.map((name) => this.#world.regions[name]);
    const [wallets, healths] = await Promise.all([
      Promise.all(regions.map((region) => walletsAt(region, this.#tenants))),
      Promise.all(regions.map(({ admin }) => getHealth(admin))),
      Promise.all(regions.map((region) => this.#read(region))),
    ]);
    const known = wallets.flat().filter((wallet) => wallet !== null);
    const outboxes = healths.flatMap((health) => health.outboxes);
    this.depths.push({
      openHolds: known.reduce((sum, { open }) => sum + open, 0),
      oldestHoldMs: Math.max(0, ...known.map(({ oldestMs }) => oldestMs ?? 0)),
      waiting: outboxes.reduce((sum, { waiting }) => sum + (waiting ?? 0), 0),
      oldestMessageMs: Math.max(0, ...outboxes.map(({ oldest_ms }) => oldest_ms ?? 0)),
    });
  }

  async #read({ admin }: SoakedRegion): Promise<void> {
    const page = await getBalances(admin, { limit: ORGANIZATIONS_MAX }).catch(() => null); // no book
    for (const { id, credits_micro, held_micro } of page?.organizations ?? []) {
      if (credits_micro === null || held_micro === null) continue;
      this.readings.push({ orgId: id, balance: credits_micro, held: held_micro });
    }
  }

  /** The same reference until it is answered, also when the load is over: granted once, and known. */
  async #topUp(): Promise<void> {
    const reference = `top-up ${++this.topUps}`;
    const dry = this.#tenants.filter(({ role }) => role === "dry");
    await Promise.all(
      dry.map(async ({ orgId, home, credited }) => {
        const { admin } = this.#world.regions[home];
        const credit = { amount_micro: TOP_UP_MICRO, reference };
        const never = new AbortController().signal;
        if ((await persist(() => postCredits(admin, orgId, credit), never)) === null) {
          throw new Error(`${reference} of ${orgId} was never answered`);
        }
        credited.set(reference, TOP_UP_MICRO);
      }),
    );
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
