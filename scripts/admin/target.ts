import { readDemo } from "../dev-demo.ts";
import type { Demo } from "../dev-demo.ts";
import { stateDirectory } from "../dev-settings.ts";
import { StateRefused } from "../dev-state.ts";
import { REGION_NAMES } from "../region-names.ts";
import type { RegionName } from "../region-names.ts";
import { WrongUsage } from "./arguments.ts";
import type { AdminClient } from "./transport.ts";

const MOUNT = "/admin/v1";
const NOWHERE = `Give a region: ${REGION_NAMES.map((name) => `--local ${name}`).join(" or ")} for a local region, or --url (or TURNPIKE_URL) for another one.`;

/** The region that the operator chose: a URL or a local region. */
export type Place = { readonly url?: string; readonly local?: RegionName };

/**
 * Returns the region's client. The URL and token come from the local demo, or from `--url` or
 * TURNPIKE_URL and TURNPIKE_ADMIN_TOKEN. Throws `WrongUsage` if one is missing.
 */
export function targetOf(
  place: Place,
  environment: Readonly<Record<string, string | undefined>>,
): AdminClient {
  if (place.local !== undefined) return localTarget(place.local);
  const address = place.url ?? environment["TURNPIKE_URL"] ?? "";
  if (address === "") throw new WrongUsage(NOWHERE);
  const url = adminUrl(address);
  const token = environment["TURNPIKE_ADMIN_TOKEN"] ?? "";
  if (token === "") {
    throw new WrongUsage(
      "Set the environment variable TURNPIKE_ADMIN_TOKEN to the region's ADMIN_TOKEN. It can't be an argument, because other programs see arguments and the shell keeps them in its history.",
    );
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new WrongUsage("TURNPIKE_ADMIN_TOKEN contains an invalid character, such as a space.");
  }
  return { url, token };
}

function demoIn(directory: string): Demo | null {
  try {
    return readDemo(directory);
  } catch (error) {
    if (error instanceof StateRefused) throw new WrongUsage(error.message);
    throw error;
  }
}

function localTarget(region: RegionName): AdminClient {
  const directory = stateDirectory();
  const demo = demoIn(directory);
  if (demo === null) {
    throw new WrongUsage(
      `There is no demo.json in ${directory}. Start the local regions first: npm start`,
    );
  }
  return { url: adminUrl(demo[region].admin_url), token: demo.admin_token };
}

const NO_PROBE_KEY =
  "Set the environment variable TURNPIKE_PROBE_KEY to a global key of this region. It pays for one request in each region.";

/**
 * Returns the key that pays for probes: the local demo's global key or TURNPIKE_PROBE_KEY. Throws
 * `WrongUsage` if it is missing.
 */
export function probeKeyOf(
  { local }: Place,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const demo = local === undefined ? null : demoIn(stateDirectory());
  const key =
    demo === null || local === undefined
      ? environment["TURNPIKE_PROBE_KEY"]
      : demo[local].global_key;
  if (key === undefined || !/^[\x21-\x7e]+$/.test(key)) throw new WrongUsage(NO_PROBE_KEY);
  return key;
}

/**
 * Returns a URL with /admin/v1 at the end. Throws `WrongUsage` for an invalid URL, and for plain
 * http except to this machine.
 */
export function adminUrl(address: string): string {
  const url = URL.parse(address);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new WrongUsage(
      "The address must be a URL, such as https://eu.example.com or http://127.0.0.1:8787.",
    );
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new WrongUsage("The address must have no user, password, query or fragment.");
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw new WrongUsage(
      "Use https, because plain http would expose the token. Only this machine's own addresses can use http.",
    );
  }
  const path = url.pathname.replace(/\/+$/, "");
  if (path === "/v1") {
    throw new WrongUsage(
      "This is the address for clients. The address for operators ends in /admin/v1.",
    );
  }
  return url.origin + (path.endsWith(MOUNT) ? path : path + MOUNT);
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
