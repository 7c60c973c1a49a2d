import path from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { createKey, createOrganization, postCredits } from "../admin-client.ts";
import type { AdminClient, Scope } from "../admin-client.ts";
import { bundleWorker } from "../bundle.ts";
import { freePort } from "../ports.ts";
import { HOST, linkBindings, startRegion } from "../region.ts";
import type { LogLine, RegionOptions } from "../region.ts";
import type { PairName } from "../region-names.ts";
import { modelOf, startUpstream } from "../../test/fakes/upstream.ts";
import { workerdPid } from "../workerd.ts";
import { closeConnections } from "./load.ts";
import type { Target } from "./load.ts";

const ADMIN_TOKEN = "bench-admin-token".padEnd(40, "b");
const LINK_SECRET = "l".repeat(40);
const ROOT = path.join(import.meta.dirname, "../..");
const CREDITS_MICRO = 1_000_000_000_000;
const RPM_LIMIT = 1000;
const PRICE = { input: 150_000, output: 600_000 };

export type Stoppable = { readonly stop: () => unknown };
/** The common parts of all bench modes: a provider, a folder for state, and cleanup. */
export type Stage = Stoppable & {
  /** The provider without a gateway. */
  readonly direct: Target;
  /** The provider's base URL without a trailing slash. */
  readonly upstream: string;
  /** The folder for D1 and the objects. */
  readonly directory: string;
  /** Registers something to stop together with the stage. */
  readonly keep: <T extends Stoppable>(started: T) => T;
};

/**
 * `root` is the gateway's checkout, by default this one. `place` is its folder below the stage's.
 */
export type GatewayOptions = { readonly place: string; readonly root?: string };
export type RunningRegion = Stoppable & {
  readonly url: string;
  readonly admin: AdminClient;
  readonly pid: number;
};
/** Starts the provider. */
export async function openStage(directory: string): Promise<Stage> {
  const { url, stop } = await startUpstream();
  const started: Stoppable[] = [{ stop: closeConnections }, { stop }];
  return {
    direct: { name: "direct", url: completionsOf(`${url}/`), keys: [], pids: [] },
    upstream: url,
    directory,
    keep: (one) => {
      started.push(one);
      return one;
    },
    stop: () => Promise.allSettled(started.map((one) => one.stop())),
  };
}

/** Starts a plain Worker (floor or pump) in front of the provider, in its own workerd. */
export async function startBareWorker(
  { upstream, keep }: Stage,
  name: "floor" | "pump",
): Promise<Target> {
  const port = await freePort();
  const { workerOptions } = unstable_getMiniflareWorkerOptions(
    path.join(import.meta.dirname, "../../wrangler.toml"),
    "eu",
  );
  const code = await bundleWorker(true, path.join(import.meta.dirname, `../workers/${name}.ts`));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: HOST,
      port,
      cf: false,
      workers: [
        {
          name,
          compatibilityDate: workerOptions["compatibilityDate"] as string,
          compatibilityFlags: workerOptions["compatibilityFlags"] as string[],
          bindings: { UPSTREAM: upstream },
          unsafeDirectSockets: [{ host: HOST, port: 0 }],
          modules: [{ type: "ESModule", path: "index.js", contents: code }],
        },
      ],
    }),
  );
  keep({ stop: () => miniflare.dispose() });
  await miniflare.ready;
  const url = completionsOf(String(await miniflare.unsafeGetDirectURL(name)));
  return { name, url, keys: [], pids: [workerdPid(port)] };
}

/** Starts a home region in the EU, without other regions. */
export function startHome(
  stage: Stage,
  options: GatewayOptions & { readonly entry?: string },
): Promise<RunningRegion> {
  return startOne(stage, { ...options, region: "eu", direct: true, peers: [] });
}

/** Starts a linked home region (EU) and other region (US), each as its own target. */
export async function startGateway(
  stage: Stage,
  options: GatewayOptions & { readonly keys: number },
) {
  const { place, keys, ...checkout } = options;
  const start = async (name: string, region: PairName, peerUrl: string, direct: number) => {
    const peers = [{ region: region === "eu" ? "us" : "eu", url: peerUrl }] as const;
    const own = { ...checkout, place: path.join(place, name), region, direct, peers };
    return stage.keep(await startOne(stage, own));
  };
  const [euPort, usPort] = [await freePort(), await freePort()];
  const homeUrl = `http://${HOST}:${euPort}`;
  const home = await start("home", "eu", `http://${HOST}:${usPort}`, euPort);
  const peer = await start("peer", "us", homeUrl, usPort);
  const regional = await openOrganization(home.admin, "regional", keys);
  const global = await openOrganization(home.admin, "global", keys);
  return {
    home: targetOf("home", [home], regional),
    peer: targetOf("peer", [peer, home], global),
    /** The home region's operator client. */
    admin: home.admin,
  };
}

/** Creates an organization with credits and keys of 1000 requests per minute. Returns the keys. */
export async function openOrganization(
  admin: AdminClient,
  scope: Scope,
  keys: number,
  slug = `bench-${scope}`,
): Promise<string[]> {
  const { orgId, memberId } = await createOrganization(admin, {
    name: "Bench",
    slug,
    ownerEmail: `owner@${slug}.example`,
    keyScope: scope,
  });
  await postCredits(admin, orgId, { amount_micro: CREDITS_MICRO, reference: "bench" });
  const names = Array.from({ length: keys }, (_, i) => `bench ${i}`);
  const made = { orgId, memberId, scope, rpmLimit: RPM_LIMIT };
  return Promise.all(names.map((name) => createKey(admin, { ...made, name })));
}

/**
 * Returns a target for the first of these regions. Requests to this target keep all of the regions
 * busy.
 */
export function targetOf(
  name: string,
  regions: readonly [RunningRegion, ...RunningRegion[]],
  keys: readonly string[],
): Target {
  const pids = regions.map(({ pid }) => pid);
  return { name, url: completionsOf(regions[0].url), keys, pids };
}

/** `entry` is a file in `scripts/workers` that wraps the gateway. */
type OneOptions = GatewayOptions &
  Pick<RegionOptions, "region" | "peers"> & { direct: true | number; entry?: string };

async function startOne(
  { upstream, directory }: Stage,
  options: OneOptions,
): Promise<RunningRegion> {
  const { region: name, peers, place, direct, root = ROOT } = options;
  const { entry = "src/index.ts" } = options;
  const problems: string[] = [];
  const port = await freePort();
  const region = await startRegion({
    region: name,
    port,
    peers,
    directory: path.join(directory, place),
    direct,
    root,
    code: await bundleWorker(true, path.join(root, entry)),
    bindings: {
      KEY_SECRETS: `a:${"bench-key-secret".padEnd(32, "b")}`,
      ADMIN_TOKEN,
      // Regions can only use plain HTTP on loopback with the sandbox on.
      ...(peers.length === 0 ? {} : { ...linkBindings(name, LINK_SECRET), SANDBOX: "on" }),
      ...upstreamBindings(upstream),
    },
    onLog: ({ level, message }: LogLine) => {
      if (level === "error" && problems.push(message) <= 5) process.stderr.write(`${message}\n`);
    },
  });
  return {
    url: region.directUrl,
    admin: { url: `${region.directUrl}admin/v1`, token: ADMIN_TOKEN },
    pid: workerdPid(port),
    stop: () => region.miniflare.dispose(),
  };
}

/** Returns the URL of completions. The base URL ends in a slash. */
export function completionsOf(base: string): string {
  return `${base}v1/chat/completions`;
}

/**
 * Returns bindings that make the upstream process a provider. It has a model for each pace, and a
 * host for each format that it supports.
 */
function upstreamBindings(upstream: string): Record<string, string> {
  const base_url = `${upstream}/v1`;
  const regions = ["eu", "us"];
  return {
    RESIDENCY: "relaxed",
    ANTHROPIC_API_KEY: "bench",
    ANTHROPIC_BASE_URL: base_url,
    PROVIDERS: JSON.stringify([
      { id: "bench", base_url, regions },
      { id: "own", base_url, regions, profile: "openai" },
    ]),
    MODELS: JSON.stringify([
      ...["model", "typical", "steady", "slow"].map((name) => modelForSale(name, "bench")),
      modelForSale("responses", "own"),
      modelForSale("messages", "anthropic"),
    ]),
  };
}

function modelForSale(name: string, provider: string): object {
  return modelOf(`bench/${name}`, PRICE, [[provider, `bench-${name}`]]);
}
