import path from "node:path";
import type { Miniflare, V4WorkerOptions } from "miniflare";
import { bundleWorker } from "./bundle.ts";
import type { Migration } from "./migrations.ts";
import { REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";

// hides warnings about .dev.vars, because secrets are bound below
process.env["WRANGLER_LOG"] ??= "error";

const ROOT = path.join(import.meta.dirname, "..");
const MIGRATIONS_ENTRY = path.join(import.meta.dirname, "workers/migrations.ts");
const MIGRATIONS_WORKER = "migrations";
export const HOST = "127.0.0.1";

export type LogLine = { readonly level: string; readonly message: string };
export type RegionOptions = {
  readonly region: RegionName;
  readonly port: number;
  readonly peers: readonly { readonly region: RegionName; readonly url: string }[];
  /** The folder for D1 and the objects. By default, the state is lost when the region stops. */
  readonly directory?: string;
  /** The checkout with wrangler.toml and migrations. The default is this one. */
  readonly root?: string;
  /** Migrations to apply instead of the checkout's. */
  readonly migrations?: readonly Migration[];
  /** The bundle from `bundleWorker`. */
  readonly code: string;
  /** Secrets and variables, which override those of wrangler.toml. */
  readonly bindings?: Readonly<Record<string, string>>;
  /** A port, or a free one, on which the region also listens without miniflare's entry Worker. */
  readonly direct?: true | number;
  /** Whether V8's inspector listens on a free port. */
  readonly hasInspector?: boolean;
  /** Whether it serves static assets too, which measurements leave out. */
  readonly hasSite?: boolean;
  /** Receives log lines. By default, only warnings and errors go to stderr. */
  readonly onLog?: (line: LogLine) => void;
};
export type Region = {
  readonly name: RegionName;
  readonly port: number;
  /** The base URL through miniflare's entry Worker. Like `directUrl`, ends in a slash. */
  readonly url: string;
  /** The base URL of the direct socket, or `url` without one. */
  readonly directUrl: string;
  readonly miniflare: Miniflare;
  /** Runs a cron trigger, because miniflare doesn't run them on schedule. */
  readonly runCron: (cron: string) => Promise<void>;
};

/** Derives the secret with which one region signs calls to another. Each direction has its own. */
export function linkSecret(secret: string, from: RegionName, to: RegionName): string {
  return `${secret}-${from}-${to}`;
}

/** Returns the bindings with a region's link secrets. */
export function linkBindings(region: RegionName, secret: string): Record<string, string> {
  const peers = REGION_NAMES.filter((peer) => peer !== region);
  const ends = peers.flatMap((peer) => [
    [`PEER_OUT_${peer.toUpperCase()}`, linkSecret(secret, region, peer)],
    [`PEER_IN_${peer.toUpperCase()}`, linkSecret(secret, peer, region)],
  ]);
  return Object.fromEntries(ends) as Record<string, string>;
}

/** Starts a region on workerd, with a fully migrated D1. Stop it with `miniflare.dispose()`. */
export async function startRegion<N extends RegionName>(
  options: RegionOptions & { readonly region: N },
): Promise<Region & { readonly name: N }> {
  const worker = `turnpike-${options.region}`;
  const miniflare = await startMiniflare(worker, options);
  try {
    const url = String(await miniflare.ready);
    await applyMigrations(miniflare);
    const directUrl =
      options.direct === undefined ? url : await miniflare.unsafeGetDirectURL(worker);
    return {
      name: options.region,
      port: options.port,
      url,
      directUrl: String(directUrl),
      miniflare,
      runCron: async (cron) => {
        const handle = await miniflare.getWorker(worker); // a handle doesn't outlive a crash
        await handle.scheduled({ cron });
      },
    };
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

/** Makes a started region's D1 current. */
async function applyMigrations(miniflare: Miniflare): Promise<void> {
  const applied = await fetch(await miniflare.unsafeGetDirectURL(MIGRATIONS_WORKER));
  if (!applied.ok) throw new Error(`A migration failed: ${await applied.text()}`);
}

/**
 * Returns the Worker that migrates the region's D1. Each call from Node to miniflare's D1 takes
 * 5 ms, and the first one takes 300 ms.
 */
async function migrationsWorker(
  { migrations, root }: RegionOptions,
  { compatibilityDate = "", d1Databases = {} }: V4WorkerOptions,
): Promise<V4WorkerOptions> {
  const { readMigrations } = await import("./migrations.ts");
  const contents = await bundleWorker(false, MIGRATIONS_ENTRY);
  return {
    name: MIGRATIONS_WORKER,
    compatibilityDate,
    d1Databases,
    bindings: { MIGRATIONS: JSON.stringify(migrations ?? readMigrations(root)) },
    modules: [{ type: "ESModule", path: "index.js", contents }],
    unsafeDirectSockets: [{ host: HOST, port: 0 }],
  };
}

async function startMiniflare(worker: string, options: RegionOptions): Promise<Miniflare> {
  // Loading them takes a second, which programs that start no region don't need.
  const { convertV4MiniflareOptions, Log, LogLevel, Miniflare } = await import("miniflare");
  const { unstable_getMiniflareWorkerOptions } = await import("wrangler");
  const { workerOptions } = unstable_getMiniflareWorkerOptions(
    path.join(options.root ?? ROOT, "wrangler.toml"),
    options.region,
  );
  if (options.hasSite !== true) delete workerOptions["assets"];
  const miniflareOptions = convertV4MiniflareOptions({
    host: HOST,
    port: options.port,
    cf: false, // Request.cf isn't fetched from the network
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
          JURISDICTION: "", // local workerd throws if a jurisdiction is set
          PEERS: JSON.stringify(options.peers),
          ...options.bindings,
        },
        modules: [{ type: "ESModule", path: "index.js", contents: options.code }],
      },
      await migrationsWorker(options, workerOptions as V4WorkerOptions),
    ],
  });
  return new Miniflare(miniflareOptions);
}

function showProblems({ level, message }: LogLine): void {
  if (level === "error" || level === "warn") process.stderr.write(`${message}\n`);
}
