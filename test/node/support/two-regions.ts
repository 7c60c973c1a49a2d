import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { bundleWorker } from "../../../scripts/bundle.ts";
import { freePort } from "../../../scripts/ports.ts";
import { HOST, startRegion } from "../../../scripts/region.ts";
import type { LogLine, Region, RegionName } from "../../../scripts/region.ts";
import { removeDirectory } from "../../../scripts/tmpfs.ts";

export const ADMIN_TOKEN = "test-admin-token-".padEnd(40, "a");
const SECRETS = { KEY_SECRETS: `a:${"k".repeat(32)}`, ADMIN_TOKEN };

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

// One bundle for all the tests of a file: the code does not change under them.
let bundle: Promise<string> | null = null;

/** Both regions on free loopback ports, empty, with the sandbox on; their state is in TMPDIR. */
export async function startTwoRegions(options: TwoRegionsOptions = {}): Promise<TwoRegions> {
  bundle ??= bundleWorker();
  const [code, euPort, usPort] = await Promise.all([bundle, freePort(), freePort()]);
  const ports = { eu: euPort, us: usPort };
  const directory = mkdtempSync(path.join(tmpdir(), "turnpike-regions-"));
  const start = async (region: RegionName, peer: RegionName): Promise<TestRegion> => {
    const log: LogLine[] = [];
    const started = await startRegion({
      region,
      port: ports[region],
      peers: [{ region: peer, url: `http://${HOST}:${ports[peer]}` }],
      directory: path.join(directory, region),
      code,
      bindings: { ...SECRETS, SANDBOX: "on", ...options.bindings, ...options[region] },
      onLog: (line) => log.push(line),
    });
    return { ...started, baseUrl: `${started.url}v1`, adminUrl: `${started.url}admin/v1`, log };
  };
  const [eu, us] = await Promise.all([start("eu", "us"), start("us", "eu")]);
  return {
    eu,
    us,
    stop: async () => {
      await Promise.all([eu.miniflare.dispose(), us.miniflare.dispose()]);
      removeDirectory(directory);
    },
  };
}
