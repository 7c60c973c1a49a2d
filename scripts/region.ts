import path from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { applyMigrations, readMigrations } from "./migrations.ts";
import type { Migration } from "./migrations.ts";
import { REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";

process.env["WRANGLER_LOG"] ??= "error"; // secrets are bound below: no word about a missing .dev.vars

const ROOT = path.join(import.meta.dirname, "..");
export const HOST = "127.0.0.1";

/** One line the Worker or its runtime logged. */
export type LogLine = { readonly level: string; readonly message: string };
export type RegionOptions = {
  readonly region: RegionName;
  readonly port: number;
  readonly peers: readonly { readonly region: RegionName; readonly url: string }[];
  /** The place of D1 and the objects; by default the state ends with the region. */
  readonly directory?: string;
  /** The checkout whose wrangler.toml and migrations it has; this one unless another is named. */
  readonly root?: string;
  /** The book's migrations that it applies, in place of that checkout's. */
  readonly migrations?: readonly Migration[];
  /** The Worker's bundle, of `bundleWorker`. */
  readonly code: string;
  /** Secrets and vars; they win over wrangler.toml's. */
  readonly bindings?: Readonly<Record<string, string>>;
  /** Also opens a socket straight into the Worker, past miniflare's entry Worker, on this or a free port. */
  readonly direct?: true | number;
  /** Whether V8's inspector listens on a free port. */
  readonly hasInspector?: boolean;
  /** Whether it serves static assets too, which measurements leave out. */
  readonly hasSite?: boolean;
  /** Receives the Worker's log; by default only warnings and errors go to stderr. */
  readonly onLog?: (line: LogLine) => void;
};
export type Region = {
  readonly name: RegionName;
  readonly port: number;
  /** Base URL through miniflare's entry Worker; ends in a slash, as `directUrl`. */
  readonly url: string;
  /** The base URL of the direct socket; by default `url`. */
  readonly directUrl: string;
  readonly miniflare: Miniflare;
  /** Fires a cron trigger, which doesn't fire automatically in local development. */
  readonly runCron: (cron: string) => Promise<void>;
};

/**
 * Returns a region's signing secret for another, derived from all links' secret. No value serves two
 * directions.
 */
export function linkSecret(secret: string, from: RegionName, to: RegionName): string {
  return `${secret}-${from}-${to}`;
}

/** A region's ends of its links, as its Worker names the secrets. */
export function linkBindings(region: RegionName, secret: string): Record<string, string> {
  const peers = REGION_NAMES.filter((peer) => peer !== region);
  const ends = peers.flatMap((peer) => [
    [`PEER_OUT_${peer.toUpperCase()}`, linkSecret(secret, region, peer)],
    [`PEER_IN_${peer.toUpperCase()}`, linkSecret(secret, peer, region)],
  ]);
  return Object.fromEntries(ends) as Record<string, string>;
}

/** One region on real workerd, its D1 with all migrations applied. Stop it with `miniflare.dispose()`. */
export async function startRegion<N extends RegionName>(
  options: RegionOptions & { readonly region: N },
): Promise<Region & { readonly name: N }> {
  const worker = `turnpike-${options.region}`;
  const miniflare = new Miniflare(miniflareOptions(worker, options));
  try {
    const url = String(await miniflare.ready);
    const book = await miniflare.getD1Database("DB", worker);
    await applyMigrations(book, options.migrations ?? readMigrations(options.root));
    const directUrl =
      options.direct === undefined ? url : await miniflare.unsafeGetDirectURL(worker);
    return {
      name: options.region,
      port: options.port,
      url,
      directUrl: String(directUrl),
      miniflare,
      runCron: async (cron) => {
        const handle = await miniflare.getWorker(worker); // a handle does not outlive a crash
        await handle.scheduled({ cron });
      },
    };
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

function miniflareOptions(worker: string, options: RegionOptions) {
  const { workerOptions } = unstable_getMiniflareWorkerOptions(
    path.join(options.root ?? ROOT, "wrangler.toml"),
    options.region,
  );
  if (options.hasSite !== true) delete workerOptions["assets"];
  return convertV4MiniflareOptions({
    host: HOST,
    port: options.port,
    cf: false, // no network look-up of Request.cf
    log: new Log(LogLevel.WARN, { prefix: options.region }),
    handleStructuredLogs: options.onLog ?? showProblems,
    ...(options.directory === undefined ? {} : { resourcePersistencePath: options.directory }),
    unsafeTriggerHandlers: true,
    ...(options.hasInspector === true && { inspectorPort: 0 }),
    workers: [
      {
        ...workerOptions,
        name: worker,
        ...(options.direct === undefined
          ? {}
          : {
              unsafeDirectSockets: [
                { host: HOST, port: options.direct === true ? 0 : options.direct },
              ],
            }),
        bindings: {
          ...(workerOptions["bindings"] as Record<string, string>),
          JURISDICTION: "", // local workerd has no jurisdictions and throws
          PEERS: JSON.stringify(options.peers),
          ...options.bindings,
        },
        modules: [{ type: "ESModule", path: "index.js", contents: options.code }],
      },
    ],
  });
}

function showProblems({ level, message }: LogLine): void {
  if (level === "error" || level === "warn") process.stderr.write(`${message}\n`);
}
