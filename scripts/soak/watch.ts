import { setTimeout as sleep } from "node:timers/promises";
import { postCredits } from "../admin-client.ts";
import { persist, TOP_UP_MICRO } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import type { World } from "./world.ts";

/** Memory is measured so many times in a run, at most every three seconds. */
const MEMORY_SAMPLES = 60;
const MEMORY_EVERY_MS = 3000;
const TOP_UP_EVERY_MS = 7000;

/** While the load runs, has both regions collect, which logs what is left of their heap, and grants to who runs dry. */
export async function tend(
  world: World,
  tenants: readonly Tenant[],
  { durationMs, stop }: { readonly durationMs: number; readonly stop: AbortSignal },
): Promise<void> {
  const everyMs = Math.min(MEMORY_EVERY_MS, durationMs / MEMORY_SAMPLES);
  let topUps = 0;
  await Promise.all([
    ...Object.values(world.regions).map(({ control }) =>
      repeat(everyMs, stop, () => control("collect")),
    ),
    repeat(TOP_UP_EVERY_MS, stop, () => topUp(world, tenants, `top-up ${++topUps}`)),
  ]);
}

/** The same reference until it is answered, also when the load is over: granted once, and known. */
async function topUp(
  { regions }: World,
  tenants: readonly Tenant[],
  reference: string,
): Promise<void> {
  const credit = { amount_micro: TOP_UP_MICRO, reference };
  const dry = tenants.filter(({ role }) => role === "dry");
  const granted = dry.map(async ({ orgId, home, credited }) => {
    if ((await persist(() => postCredits(regions[home].admin, orgId, credit))) === null) {
      throw new Error(`${reference} of ${orgId} was never answered`);
    }
    credited.set(reference, TOP_UP_MICRO);
  });
  await Promise.all(granted);
}

async function repeat(
  everyMs: number,
  stop: AbortSignal,
  work: () => Promise<unknown>,
): Promise<void> {
  while (!stop.aborted) {
    await work().catch(() => undefined); // a region may be away: the next time it will be there
    await sleep(everyMs, undefined, { signal: stop }).catch(() => undefined);
  }
}
