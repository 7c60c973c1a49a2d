import path from "node:path";
import { addCredits, createKey, createOrganization } from "../admin-client.ts";
import type { AdminClient, Scope } from "../admin-client.ts";
import { bundleWorker } from "../bundle.ts";
import { freePort } from "../ports.ts";
import { HOST, linkBindings, startRegion } from "../region.ts";
import type { LogLine, RegionOptions } from "../region.ts";
import type { RegionName } from "../region-names.ts";
import { workerdPid } from "../workerd.ts";
import { completionsOf, startProgram } from "./bare-workers.ts";
import type { Place, Stoppable, Target } from "./target.ts";

export const ADMIN_TOKEN = "bench-admin-token".padEnd(40, "b");
const LINK_SECRETS = { EU_SIGNS: "e".repeat(40), US_SIGNS: "u".repeat(40) };
const ROOT = path.join(import.meta.dirname, "../..");
const CREDITS_MICRO = 1_000_000_000_000;
const RPM_LIMIT = 1000;

export type GatewayOptions = {
  /** Base URL of the upstream mock, without a slash at its end. */
  readonly upstream: string;
  /** Where D1 and the objects live. */
  readonly directory: string;
  /** Another checkout of the gateway than this one. */
  readonly root?: string;
  /** Vars over the bench's own. */
  readonly bindings?: Readonly<Record<string, string>>;
};
/** A region of the gateway: where, how to reach its operator's door, and how to stop it. */
export type RunningRegion = Stoppable & {
  readonly url: string;
  readonly admin: AdminClient;
  readonly pid: number;
};
/** The gateway in both regions, each asked by its own target. */
export type Gateway = Stoppable & {
  readonly home: Target;
  readonly peer: Target;
  /** The other region once more, behind a long link; null unless `linkMs` was given. */
  readonly farPeer: Target | null;
  /** The operator's door at home. */
  readonly admin: AdminClient;
  /** Base URLs of home as the peer and as the far peer reach it. */
  readonly homeUrl: string;
  readonly homeUrlFromFar: string | null;
};

/** Home in the EU, alone: no other region is known to it. */
export async function startHome(
  options: GatewayOptions & { readonly entry?: string },
): Promise<RunningRegion> {
  return startOne({ ...options, region: "eu", direct: true, peers: [] });
}

/** Home in the EU and a peer in the US, linked; with `linkMs` also a peer whose link has that round trip. */
export async function startGateway(
  options: GatewayOptions & { readonly keys: number; readonly linkMs?: number | undefined },
): Promise<Gateway> {
  const { upstream, directory, keys, linkMs, root } = options;
  const started: Stoppable[] = [];
  const stop = (): Promise<unknown> => Promise.allSettled(started.map((one) => one.stop()));
  const start = async (place: Place, region: RegionName, peerUrl: string, direct: number) => {
    const one = await startOne({
      upstream,
      ...(root !== undefined && { root }),
      directory: path.join(directory, place),
      region,
      direct,
      peers: [{ region: region === "eu" ? "us" : "eu", url: peerUrl }],
    });
    started.push(one);
    return one;
  };
  try {
    const [euPort, usPort] = [await freePort(), await freePort()];
    const homeUrl = `http://${HOST}:${euPort}`;
    const home = await start("home", "eu", `http://${HOST}:${usPort}`, euPort);
    const peer = await start("peer", "us", homeUrl, usPort);
    const regional = await openOrganization(home.admin, "regional", keys);
    const global = await openOrganization(home.admin, "global", keys);
    const near: Target = targetOf("peer", [peer, home], global);
    const { admin } = home;
    const gateway = { home: targetOf("home", [home], regional), peer: near, homeUrl, admin, stop };
    if (linkMs === undefined) return { ...gateway, farPeer: null, homeUrlFromFar: null };
    const link = await startProgram("link.ts", [String(euPort), String(linkMs)]);
    started.push(link);
    const far = await start("far peer", "us", link.url, await freePort());
    const farPeer = targetOf("far peer", [far, home], global);
    return { ...gateway, farPeer, homeUrlFromFar: link.url };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** An organisation with credits and so many keys of 1000 requests a minute. */
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
  await addCredits(admin, { orgId, amountMicro: CREDITS_MICRO, reference: "bench" });
  const names = Array.from({ length: keys }, (_, i) => `bench ${i}`);
  const made = { orgId, memberId, scope, rpmLimit: RPM_LIMIT };
  return Promise.all(names.map((name) => createKey(admin, { ...made, name })));
}

/** A region asked with these keys; `regions` are all that its requests keep busy, it first. */
export function targetOf(
  name: Place,
  regions: readonly [RunningRegion, ...RunningRegion[]],
  keys: readonly string[],
): Target {
  const pids = regions.map(({ pid }) => pid);
  return { name, url: completionsOf(regions[0].url), keys, pids };
}

/** `entry`: a file in `scripts/workers` around the gateway. */
type OneOptions = GatewayOptions &
  Pick<RegionOptions, "region" | "peers"> & { direct: true | number; entry?: string };

async function startOne(options: OneOptions): Promise<RunningRegion> {
  const { region: name, peers, directory, direct, upstream, bindings, root = ROOT } = options;
  const { entry = "src/index.ts" } = options;
  const problems: string[] = [];
  const port = await freePort();
  const region = await startRegion({
    region: name,
    port,
    peers,
    directory,
    direct,
    root,
    code: await bundleWorker(true, path.join(root, entry)),
    bindings: {
      KEY_SECRETS: `a:${"bench-key-secret".padEnd(32, "b")}`,
      ADMIN_TOKEN,
      // Plain HTTP between regions is for loopback, and only while the sandbox is on.
      ...(peers.length === 0 ? {} : { ...linkBindings(name, LINK_SECRETS), SANDBOX: "on" }),
      ...upstreamBindings(upstream),
      ...bindings,
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

/**
 * The upstream mock as a provider with a model for each pace that it has, and as the host of a model for each
 * door whose wire it speaks.
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
      ...["model", "typical", "steady", "slow"].map((name) => modelNamed(name)),
      modelNamed("responses", "own"),
      modelNamed("messages", "anthropic"),
    ]),
  };
}

function modelNamed(name: string, provider = "bench"): object {
  return {
    id: `bench/${name}`,
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    price: { input: 150_000, output: 600_000 },
    routes: [{ provider, upstream_id: `bench-${name}` }],
  };
}
