import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { bundleWorker } from "../../../scripts/bundle.ts";
import { freePort } from "../../../scripts/ports.ts";
import { HOST, linkBindings, startRegion } from "../../../scripts/region.ts";
import type { LinkSecrets, LogLine, Region, RegionName } from "../../../scripts/region.ts";
import { removeDirectory } from "../../../scripts/tmpfs.ts";

export const ADMIN_TOKEN = "test-admin-token-".padEnd(40, "a");
const SECRETS = { KEY_SECRETS: `a:${"k".repeat(32)}`, ADMIN_TOKEN };
export const LINK: LinkSecrets = {
  EU_SIGNS: "eu-signs-".padEnd(40, "e"),
  US_SIGNS: "us-signs-".padEnd(40, "u"),
};

export type TestRegion = Region & {
  /** Ends in /v1, as an SDK wants it. */
  readonly baseUrl: string;
  /** Ends in /admin/v1. */
  readonly adminUrl: string;
  /** Everything the Worker has logged so far. */
  readonly log: readonly LogLine[];
};
export type TwoRegions = {
  readonly eu: TestRegion;
  readonly us: TestRegion;
  /** Stops both and removes their state. */
  readonly stop: () => Promise<void>;
};
export type TwoRegionsOptions = {
  /** Vars and secrets for both regions, over the tests' own. */
  readonly bindings?: Readonly<Record<string, string>>;
  /** The same for one region. */
  readonly eu?: Readonly<Record<string, string>>;
  readonly us?: Readonly<Record<string, string>>;
};

export type KeptRegion = {
  /** The region as it runs now: another one after `restart`. */
  readonly region: () => TestRegion;
  /** Stops it and starts it again on the same state, with these vars over those it began with. */
  readonly restart: (bindings?: Readonly<Record<string, string>>) => Promise<void>;
  /** Stops it and removes its state. */
  readonly stop: () => Promise<void>;
};

// One bundle for all the tests of a file: the code does not change under them.
let bundle: Promise<string> | null = null;

/** Both regions on free loopback ports, empty, with the sandbox on; their state is in TMPDIR. */
export async function startTwoRegions(options: TwoRegionsOptions = {}): Promise<TwoRegions> {
  const [euPort, usPort] = await Promise.all([freePort(), freePort()]);
  const ports = { eu: euPort, us: usPort };
  const directory = newDirectory();
  const bindings = (region: RegionName) => ({ ...options.bindings, ...options[region] });
  const [eu, us] = await Promise.all([
    startOne("eu", { ports, directory, bindings: bindings("eu") }),
    startOne("us", { ports, directory, bindings: bindings("us") }),
  ]);
  return {
    eu,
    us,
    stop: async () => {
      await Promise.all([eu.miniflare.dispose(), us.miniflare.dispose()]);
      removeDirectory(directory);
    },
  };
}

/** The EU region alone (its peer is down), for tests that stop and start it on the same state. */
export async function startKeptRegion(
  bindings: Readonly<Record<string, string>> = {},
): Promise<KeptRegion> {
  const [eu, us] = await Promise.all([freePort(), freePort()]);
  const directory = newDirectory();
  const start = (more: Readonly<Record<string, string>>): Promise<TestRegion> =>
    startOne("eu", { ports: { eu, us }, directory, bindings: { ...bindings, ...more } });
  let region = await start({});
  return {
    region: () => region,
    restart: async (more = {}) => {
      await region.miniflare.dispose();
      region = await start(more);
    },
    stop: async () => {
      await region.miniflare.dispose();
      removeDirectory(directory);
    },
  };
}

function newDirectory(): string {
  return mkdtempSync(path.join(tmpdir(), "turnpike-regions-"));
}

type Place = {
  readonly ports: Readonly<Record<RegionName, number>>;
  readonly directory: string;
  readonly bindings: Readonly<Record<string, string>>;
};

async function startOne(name: RegionName, place: Place): Promise<TestRegion> {
  bundle ??= bundleWorker();
  const peer = name === "eu" ? "us" : "eu";
  const log: LogLine[] = [];
  const region = await startRegion({
    region: name,
    port: place.ports[name],
    peers: [{ region: peer, url: `http://${HOST}:${place.ports[peer]}` }],
    directory: path.join(place.directory, name),
    code: await bundle,
    bindings: { ...SECRETS, ...linkBindings(name, LINK), SANDBOX: "on", ...place.bindings },
    onLog: (line) => log.push(line),
  });
  return { ...region, baseUrl: `${region.url}v1`, adminUrl: `${region.url}admin/v1`, log };
}
