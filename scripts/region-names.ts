/** The regions that the repository's wrangler.toml has. */
export type RegionName = "eu" | "us";

export const REGION_NAMES: readonly RegionName[] = ["eu", "us"];
