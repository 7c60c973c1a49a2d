import { REGIONS } from "../src/shared/regions.ts";
import type { Region } from "../src/shared/regions.ts";

export type RegionName = Region;
export const REGION_NAMES = REGIONS;

/** The region whose organization and console `npm start` shows first. */
export const FIRST_REGION: RegionName = "eu";

/** The home region and other region in the bench and the soak. */
export const PAIR = ["eu", "us"] as const satisfies readonly RegionName[];
export type PairName = (typeof PAIR)[number];

export function byRegion<T>(make: (region: RegionName) => T): Record<RegionName, T> {
  return Object.fromEntries(REGION_NAMES.map((region) => [region, make(region)])) as Record<
    RegionName,
    T
  >;
}

/** Runs a call for each region concurrently. */
export async function callEach<T>(
  call: (region: RegionName) => Promise<T>,
): Promise<Record<RegionName, T>> {
  const answers = await Promise.all(REGION_NAMES.map(async (name) => [name, await call(name)]));
  return Object.fromEntries(answers) as Record<RegionName, T>;
}
