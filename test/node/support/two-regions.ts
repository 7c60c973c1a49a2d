import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { bundleWorker } from "../../../scripts/bundle.ts";
import { freePort } from "../../../scripts/ports.ts";
import { HOST, linkBindings, startRegion } from "../../../scripts/region.ts";
import type { LogLine, Region } from "../../../scripts/region.ts";
import type { PairName } from "../../../scripts/region-names.ts";
import { FaultProxy } from "../../fakes/fault-proxy.ts";
import { removeDirectory } from "../../../scripts/tmpfs.ts";

export const ADMIN_TOKEN = "test-admin-token-".padEnd(40, "a");
const SECRETS = { KEY_SECRETS: `a:${"k".repeat(32)}`, ADMIN_TOKEN };
export const LINK = "link-".padEnd(40, "l");

export type TestRegion = Region & {
  readonly name: PairName;
  /** Ends in /v1, as SDKs require. */
  readonly baseUrl: string;
  /** Ends in /admin/v1. */
  readonly adminUrl: string;
  /** The Worker's log so far. */
  readonly log: readonly LogLine[];
  /** The folder with its D1 and objects. */
  readonly directory: string;
};
export type TwoRegions = {
  readonly eu: TestRegion;
  readonly us: TestRegion;
  /** Restarts a region on its port and state, with these variables over its first ones. */
  readonly restart: (region: PairName, bindings?: Vars) => Promise<void>;
  /** Stops both and removes their state. */
  readonly stop: () => Promise<void>;
};
/** Both regions with a proxy in each direction that tests can make fail. */
export type FaultyRegions = TwoRegions & {
  /** The proxy for calls from the US to the EU. */
  readonly toEu: FaultProxy;
  /** The proxy for calls from the EU to the US. */
  readonly toUs: FaultProxy;
};
type Vars = Readonly<Record<string, string>>;
type TwoRegionsOptions = {
  /** An entry that wraps the gateway's own. */
  readonly entry?: string;
  /** Variables and secrets for both regions, over those of the tests. */
  readonly bindings?: Vars;
  /** Variables and secrets for one region. */
  readonly eu?: Vars;
  readonly us?: Vars;
  /** Also serves static assets. */
  readonly hasSite?: boolean;
  /** Whether `IsolateMemory` can measure the regions. */
  readonly hasInspector?: boolean;
};

export type PersistentRegion = {
  /** Returns the running region, which `restart` replaces. */
  readonly region: () => TestRegion;
  /** Restarts the region on its state, with these variables over its first ones. */
  readonly restart: (bindings?: Vars) => Promise<void>;
  /** Stops it and removes its state. */
  readonly stop: () => Promise<void>;
};

/** The gateway with the platform's limits. */
const LIMITED = path.join(import.meta.dirname, "../../workers/limited.ts");
// Bundles by entry, built once for each file of tests.
const bundles = new Map<string, Promise<string>>();

function bundleOf(entry = LIMITED): Promise<string> {
  const bundle = bundles.get(entry) ?? bundleWorker(false, entry);
  bundles.set(entry, bundle);
  return bundle;
}

/** Starts both regions on free loopback ports with an empty state in TMPDIR and the sandbox on. */
export async function startTwoRegions(options: TwoRegionsOptions = {}): Promise<TwoRegions> {
  const ports = await freePorts();
  return startBoth(options, ports, { eu: urlOf(ports.eu), us: urlOf(ports.us) });
}

/**
 * Starts two regions with a proxy between them in each direction. Clients don't use the proxies.
 */
export async function startFaultyRegions(options: TwoRegionsOptions = {}): Promise<FaultyRegions> {
  const ports = await freePorts();
  const toEu = await FaultProxy.start(urlOf(ports.eu));
  const toUs = await FaultProxy.start(urlOf(ports.us));
  const regions = await startBoth(options, ports, { eu: toEu.url, us: toUs.url });
  const { stop } = regions; // keeps the object, in which a restart replaces the region
  return Object.assign(regions, {
    toEu,
    toUs,
    stop: async () => {
      await stop();
      await Promise.all([toEu.stop(), toUs.stop()]);
    },
  });
}

type ByRegion<T> = Readonly<Record<PairName, T>>;

async function freePorts(): Promise<ByRegion<number>> {
  const [eu, us] = await Promise.all([freePort(), freePort()]);
  return { eu, us };
}

function urlOf(port: number): string {
  return `http://${HOST}:${port}`;
}

/** `urls` has the URL at which the other region calls each one. */
async function startBoth(
  options: TwoRegionsOptions,
  ports: ByRegion<number>,
  urls: ByRegion<string>,
): Promise<TwoRegions> {
  const directory = newDirectory();
  const start = (name: PairName, more: Vars = {}): Promise<TestRegion> =>
    startOne(name, {
      port: ports[name],
      peerUrl: urls[name === "eu" ? "us" : "eu"],
      directory,
      bindings: { ...options.bindings, ...options[name], ...more },
      entry: options.entry,
      hasSite: options.hasSite,
      hasInspector: options.hasInspector,
    });
  const [eu, us] = await Promise.all([start("eu"), start("us")]);
  const regions = {
    eu,
    us,
    restart: async (name: PairName, bindings: Vars = {}) => {
      await regions[name].miniflare.dispose();
      regions[name] = await start(name, bindings);
    },
    stop: async () => {
      await Promise.all([regions.eu.miniflare.dispose(), regions.us.miniflare.dispose()]);
      removeDirectory(directory);
    },
  };
  return regions;
}

/**
 * Starts only the EU region, for tests that restart it on the same state. `direct` also opens a
 * socket without miniflare's entry Worker. `entry` wraps the gateway's own.
 */
export async function startPersistentRegion(
  bindings: Vars = {},
  more: { readonly direct?: boolean; readonly entry?: string | undefined } = {},
): Promise<PersistentRegion> {
  const ports = await freePorts();
  const place = { ...more, port: ports.eu, peerUrl: urlOf(ports.us), directory: newDirectory() };
  const start = (changed: Vars): Promise<TestRegion> =>
    startOne("eu", { ...place, bindings: { ...bindings, ...changed } });
  let region = await start({});
  return {
    region: () => region,
    restart: async (changed = {}) => {
      await region.miniflare.dispose();
      region = await start(changed);
    },
    stop: async () => {
      await region.miniflare.dispose();
      removeDirectory(place.directory);
    },
  };
}

function newDirectory(): string {
  return mkdtempSync(path.join(tmpdir(), "turnpike-regions-"));
}

type Place = {
  readonly port: number;
  readonly peerUrl: string;
  readonly directory: string;
  readonly bindings: Vars;
  readonly entry?: string | undefined;
  readonly direct?: boolean;
  readonly hasSite?: boolean | undefined;
  readonly hasInspector?: boolean | undefined;
};

async function startOne(name: PairName, place: Place): Promise<TestRegion> {
  const peer = name === "eu" ? "us" : "eu";
  const log: LogLine[] = [];
  const directory = path.join(place.directory, name);
  const region = await startRegion({
    region: name,
    port: place.port,
    peers: [{ region: peer, url: place.peerUrl }],
    directory,
    code: await bundleOf(place.entry),
    bindings: { ...SECRETS, ...linkBindings(name, LINK), SANDBOX: "on", ...place.bindings },
    onLog: (line) => log.push(line),
    ...(place.direct === true && { direct: true }),
    ...(place.hasSite === true && { hasSite: true }),
    ...(place.hasInspector === true && { hasInspector: true }),
  });
  return {
    ...region,
    baseUrl: `${region.url}v1`,
    adminUrl: `${region.url}admin/v1`,
    log,
    directory,
  };
}
