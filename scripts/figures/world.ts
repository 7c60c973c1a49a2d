import { randomBytes } from "node:crypto";
import path from "node:path";
import { atMost } from "../../src/lib/at-most.ts";
import { addCredits, createKey, createOrganization } from "../admin-client.ts";
import type { AdminClient, Made, Scope } from "../admin-client.ts";
import { bundleWorker } from "../bundle.ts";
import { freePort } from "../ports.ts";
import { HOST, linkBindings, startRegion } from "../region.ts";
import type { LinkSecrets, Region } from "../region.ts";
import type { RegionName } from "../region-names.ts";

const ADMIN_TOKEN = "figures-admin-token".padEnd(40, "f");
const LINK: LinkSecrets = {
  EU_SIGNS: "eu-signs-".padEnd(40, "e"),
  US_SIGNS: "us-signs-".padEnd(40, "u"),
};
const RPM_LIMIT_MAX = 1000;

/** A region to measure: `v1` is its base address, `worker` its name inside miniflare. */
export type Place = Region & {
  readonly v1: string;
  readonly admin: AdminClient;
  readonly worker: string;
};
export type PlaceOptions = {
  /** Where its state is kept. */
  readonly directory: string;
  readonly bindings?: Readonly<Record<string, string>>;
  /** Another entry than the gateway's own, around it. */
  readonly entry?: string;
  /** Its addresses lead straight into the Worker. */
  readonly direct?: true;
};
export type Places = {
  readonly eu: Place;
  readonly us: Place;
  /** Stops the EU, and answers with what starts it again on its port and state. */
  readonly stopEu: () => Promise<() => Promise<Place>>;
  readonly stop: () => Promise<void>;
};

/** The EU region alone, with the sandbox on; stop it with `miniflare.dispose()`. */
export async function startPlace(options: PlaceOptions): Promise<Place> {
  return start("eu", { ...options, port: await freePort(), peerPort: await freePort() });
}

/** Both regions, linked, with the sandbox on. */
export async function startPlaces(options: PlaceOptions): Promise<Places> {
  const ports = { eu: await freePort(), us: await freePort() };
  const startOne = (name: RegionName): Promise<Place> =>
    start(name, { ...options, port: ports[name], peerPort: ports[name === "eu" ? "us" : "eu"] });
  const places = { eu: await startOne("eu"), us: await startOne("us") };
  const stopEu = async () => {
    await places.eu.miniflare.dispose();
    return async () => (places.eu = await startOne("eu"));
  };
  const stop = async () => {
    await Promise.all([places.eu.miniflare.dispose(), places.us.miniflare.dispose()]);
  };
  return Object.assign(places, { stopEu, stop });
}

/** A new organisation with a key and credits in micros; the key may be used 1000 times a minute. */
export async function makeAccount(
  { admin }: Pick<Place, "admin">,
  options: { readonly credits: number; readonly scope?: Scope; readonly rpmLimit?: number },
): Promise<Made> {
  const { credits, scope = "regional", rpmLimit = RPM_LIMIT_MAX } = options;
  const name = `figures-${randomBytes(6).toString("hex")}`;
  const { orgId, memberId } = await createOrganization(admin, {
    name,
    slug: name,
    ownerEmail: `${name}@example.com`,
    keyScope: scope,
  });
  if (credits > 0) await addCredits(admin, { orgId, amountMicro: credits, reference: "first" });
  const key = await createKey(admin, { orgId, memberId, name, scope, rpmLimit });
  return { orgId, memberId, key };
}

/** Does as many things as `count`, `callers` at a time; the results in their order. */
export function inTurns<T>(
  count: number,
  callers: number,
  one: (n: number) => Promise<T>,
): Promise<readonly T[]> {
  return atMost(callers, [...Array(count).keys()], one);
}

async function start(
  name: RegionName,
  options: PlaceOptions & { readonly port: number; readonly peerPort: number },
): Promise<Place> {
  const { port, peerPort, directory, bindings, entry, direct } = options;
  const region = await startRegion({
    region: name,
    port,
    peers: [{ region: name === "eu" ? "us" : "eu", url: `http://${HOST}:${peerPort}` }],
    directory: path.join(directory, name),
    code: await bundleWorker(true, entry),
    bindings: {
      KEY_SECRETS: `a:${"f".repeat(32)}`,
      ADMIN_TOKEN,
      ...linkBindings(name, LINK),
      SANDBOX: "on",
      ...bindings,
    },
    ...(direct && { direct }),
    onLog: () => {}, // warnings are what is being caused
  });
  const v1 = `${region.directUrl}v1`;
  const admin = { url: `${region.directUrl}admin/v1`, token: ADMIN_TOKEN };
  return { ...region, v1, admin, worker: `turnpike-${name}` };
}
