import type { Migration } from "../../../scripts/migrations.ts";
import { freePort } from "../../../scripts/ports.ts";
import { HOST, linkBindings, startRegion } from "../../../scripts/region.ts";
import type { LogLine, Region } from "../../../scripts/region.ts";

export const ADMIN_TOKEN = "release-admin-token-".padEnd(40, "a");
const BINDINGS = {
  ...linkBindings("eu", "l".repeat(40)),
  KEY_SECRETS: `a:${"r".repeat(40)}`,
  ADMIN_TOKEN,
  SANDBOX: "on",
  METRICS_DELAY_MS: "0",
  UPSTREAM_IDLE_MS: "600000", // long enough that running requests don't time out on a slow machine
};

export type Program = {
  readonly code: string;
  /** The folder with its wrangler.toml. The default is this checkout. */
  readonly root?: string;
  /** Migrations to apply before it starts. */
  readonly migrations: readonly Migration[];
};

/** A running EU region with a state in `directory`, and its log. */
export type ReleaseRegion = Region & { readonly log: readonly LogLine[] };

/**
 * Starts a release on a state. Its peer region is down. `clockOffsetMs` sets the clock to the time
 * of the state, so that its holds haven't expired.
 */
export async function startReleaseRegion(
  { code, root, migrations }: Program,
  directory: string,
  clockOffsetMs = 0,
): Promise<ReleaseRegion> {
  const log: LogLine[] = [];
  const region = await startRegion({
    region: "eu",
    port: await freePort(),
    peers: [{ region: "us", url: `http://${HOST}:9` }],
    directory,
    code,
    ...(root !== undefined && { root }),
    migrations,
    bindings: { ...BINDINGS, CLOCK_OFFSET_MS: String(clockOffsetMs) },
    onLog: (line) => log.push(line),
  });
  return { ...region, log };
}
