type Hosts = readonly string[];

/** A region. Adding one needs a row here, an `[env.<id>]` in wrangler.toml and its secrets. */
type RegionRow = {
  /** Two to eight lowercase letters, used in keys and secret names. */
  readonly id: string;
  /** Cloudflare's data jurisdiction; null for none. */
  readonly jurisdiction: string | null;
  readonly hosts: { readonly strict: Hosts; readonly relaxed: Hosts };
  /** AWS regions within it: the default, a pattern and the place in words; null for none. */
  readonly aws: { readonly usual: string; readonly pattern: RegExp; readonly place: string } | null;
  /** Anthropic's `inference_geo`; null for no promise. */
  readonly anthropicGeo: "us" | null;
};

const ROWS = [
  {
    id: "eu",
    jurisdiction: "eu",
    hosts: { strict: ["eu"], relaxed: ["eu", "global"] },
    // London and Zurich are not in EU member states.
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

/** The regions. */
export const REGION_ROWS: readonly (RegionRow & { readonly id: Region })[] = ROWS;

export const REGIONS: readonly Region[] = REGION_ROWS.map(({ id }) => id);

/** Returns a region's row. */
export function rowOf(region: Region): RegionRow {
  const row = REGION_ROWS.find(({ id }) => id === region);
  if (row === undefined) throw new Error(`no region ${region}`);
  return row;
}

/** Returns the region of this name, or undefined. */
export function regionNamed(name: string | undefined): Region | undefined {
  return REGIONS.find((region) => region === name);
}
