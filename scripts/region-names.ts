import { REGIONS } from "../src/shared/regions.ts";
import type { Region } from "../src/shared/regions.ts";

/** The regions of the table. */
export type RegionName = Region;
export const REGION_NAMES = REGIONS;

/** The one whose organization and console are shown first. */
export const FIRST_REGION: RegionName = "eu";

/** Two that are enough to show what one home and one away do: those of the bench and the soak. */
export const PAIR = ["eu", "us"] as const satisfies readonly RegionName[];
export type PairName = (typeof PAIR)[number];

/** Something of each region of the table. */
export function byRegion<T>(make: (region: RegionName) => T): Record<RegionName, T> {
  return Object.fromEntries(REGION_NAMES.map((region) => [region, make(region)])) as Record<
    RegionName,
    T
  >;
}
