import type { Migration } from "../migrations.ts";
import { freePort } from "../ports.ts";
import { HOST, linkBindings, startRegion } from "../region.ts";
import type { LogLine, Region } from "../region.ts";

export const ADMIN_TOKEN = "release-admin-token-".padEnd(40, "a");
const BINDINGS = {
  ...linkBindings("eu", "l".repeat(40)),
  KEY_SECRETS: `a:${"r".repeat(40)}`,
  ADMIN_TOKEN,
  SANDBOX: "on",
  METRICS_DELAY_MS: "0",
  UPSTREAM_IDLE_MS: "600000", // running work stays so on a slow machine
};

/** One release running on a state: its bundle, and how it is configured. */
export type Program = {
  readonly code: string;
  /** The folder of its wrangler.toml; by default this checkout. */
  readonly root?: string;
  /** The book's migrations that are applied before it starts. */
  readonly migrations: readonly Migration[];
};

/** The EU on a state that is kept in `directory`, with what it has logged so far. */
export type Place = Region & { readonly log: readonly LogLine[] };

/**
 * Starts a release on a state; its peer is down. `clockOffsetMs` brings it to the time of the state: what
 * was open then is not over.
 */
export async function startPlace(
  { code, root, migrations }: Program,
  directory: string,
  clockOffsetMs = 0,
): Promise<Place> {
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
