/** Where a host may run a request that a region serves. */
type Hosts = readonly string[];

/**
 * What a region is. One more is a row here, an `[env.<id>]` in wrangler.toml and its secrets; nothing else
 * knows regions by their names.
 */
type RegionRow = {
  /** Two to eight lowercase letters (`apac` would be one): in keys, and in the names of its peers' secrets. */
  readonly id: string;
  /** Where Cloudflare keeps its data; null where it has no such jurisdiction. */
  readonly jurisdiction: string | null;
  /** The tags of hosts that its requests may run at, strictly and where RESIDENCY is `relaxed`. */
  readonly hosts: { readonly strict: Hosts; readonly relaxed: Hosts };
  /** What of AWS lies in it: the usual region, all of them, and the place in words; null: nothing. */
  readonly aws: { readonly usual: string; readonly pattern: RegExp; readonly place: string } | null;
  /** Where Anthropic can promise to run a request of it (`inference_geo`); null: nowhere in particular. */
  readonly anthropicGeo: "us" | null;
};

const ROWS = [
  {
    id: "eu",
    jurisdiction: "eu",
    hosts: { strict: ["eu"], relaxed: ["eu", "global"] },
    // London and Zurich are in no member state.
    aws: {
      usual: "eu-central-1",
      pattern: /^eu-(?:central-1|north-1|south-[12]|west-[13])$/,
      place: "a member state of the EU",
    },
    anthropicGeo: null,
  },
  {
    id: "us",
    jurisdiction: "us",
    hosts: { strict: ["us", "global"], relaxed: ["us", "global"] },
    aws: {
      usual: "us-east-1",
      pattern: /^us-(?:east|west)-[12]$/,
      place: "the United States",
    },
    anthropicGeo: "us",
  },
] as const satisfies readonly RegionRow[];

export type Region = (typeof ROWS)[number]["id"];

/** The table. */
export const REGION_ROWS: readonly (RegionRow & { readonly id: Region })[] = ROWS;

export const REGIONS: readonly Region[] = REGION_ROWS.map(({ id }) => id);

/** A region's row. Every `Region` has one. */
export function rowOf(region: Region): RegionRow {
  const row = REGION_ROWS.find(({ id }) => id === region);
  if (row === undefined) throw new Error(`no region ${region}`);
  return row;
}

/** The region of this name, or undefined. */
export function regionNamed(name: string | undefined): Region | undefined {
  return REGIONS.find((region) => region === name);
}
