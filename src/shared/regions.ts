type Hosts = readonly string[];

/** A region. A new one needs a row here, an `[env.<id>]` in wrangler.toml, and secrets. */
type RegionRow = {
  /** Two to eight lowercase letters, part of keys and secret names. */
  readonly id: string;
  readonly jurisdiction: string | null;
  readonly hosts: { readonly strict: Hosts; readonly relaxed: Hosts };
  /** The region's AWS regions: the default, a pattern of valid ones, and a name for messages. */
  readonly aws: { readonly usual: string; readonly pattern: RegExp; readonly place: string } | null;
  /** Anthropic's `inference_geo`. Null if Anthropic doesn't offer the region. */
  readonly anthropicGeo: "us" | null;
};

const ROWS = [
  {
    id: "eu",
    jurisdiction: "eu",
    hosts: { strict: ["eu"], relaxed: ["eu", "global"] },
    // Excludes London and Zurich, which aren't in the EU.
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

export const REGION_ROWS: readonly (RegionRow & { readonly id: Region })[] = ROWS;

export const REGIONS: readonly Region[] = REGION_ROWS.map(({ id }) => id);

export function regionRowOf(region: Region): RegionRow {
  const row = REGION_ROWS.find(({ id }) => id === region);
  if (row === undefined) throw new Error(`no region ${region}`);
  return row;
}

export function findRegion(name: string | undefined): Region | undefined {
  return REGIONS.find((region) => region === name);
}
