import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import { readState, StateRefused, writeState } from "./dev-state.ts";
import { byRegion, REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";

export const ROOT = path.join(import.meta.dirname, "..");
/** The first region's default port. The others follow it. */
const PORT = 8787;
const PORTS = byRegion((region) => PORT + REGION_NAMES.indexOf(region));

/** Returns the folder of the local state: DEV_DIR, or a folder for each choice of ports. */
export function stateDirectory(): string {
  const { DEV_DIR } = process.env;
  if (DEV_DIR !== undefined && DEV_DIR !== "") return path.resolve(ROOT, DEV_DIR);
  const ports = REGION_NAMES.map(portOf);
  const isUsual = REGION_NAMES.every((region, index) => ports[index] === PORTS[region]);
  const isChosen = ports.every((port) => typeof port === "number") && !isUsual;
  return path.join(ROOT, ".dev", ...(isChosen ? [`ports-${ports.join("-")}`] : []));
}

/** Returns the name of the variable with a region's port. */
export function portVariable(region: RegionName): string {
  return `${region.toUpperCase()}_PORT`;
}

/** Returns a region's port, or the problem of its variable. */
export function portOf(region: RegionName): number | { readonly problem: string } {
  const text = process.env[portVariable(region)] ?? "";
  const port = text === "" ? PORTS[region] : Number(text);
  if (Number.isSafeInteger(port) && port > 0 && port < 65_536) return port;
  return { problem: `${portVariable(region)} must be a port from 1 to 65535, not "${text}".` };
}

type LocalSecrets = {
  readonly KEY_SECRETS: string;
  readonly ADMIN_TOKEN: string;
  /** The secret from which the links' secrets are derived. */
  readonly LINK_SECRET: string;
};

/**
 * Reads the secrets, and creates missing ones in a file that only its owner can read. Throws
 * `StateRefused` if the file is invalid, or missing although regions have a state.
 */
export function localSecrets(directory: string): LocalSecrets {
  const kept = readState(directory, "secrets.json") as Partial<LocalSecrets> | null;
  if (kept === null && REGION_NAMES.some((name) => existsSync(path.join(directory, name)))) {
    throw new StateRefused(
      `The state in ${directory} has lost its secrets.json, without which no key of it is good. Put it back, or forget the state: npm start -- --clean`,
    );
  }
  const secrets = {
    KEY_SECRETS: `a:${newSecret()}`,
    ADMIN_TOKEN: newSecret(),
    LINK_SECRET: newSecret(),
    ...kept,
  };
  if (Object.keys(kept ?? {}).length < Object.keys(secrets).length) {
    writeState(directory, "secrets.json", secrets);
  }
  return secrets;
}

function newSecret(): string {
  return randomBytes(32).toString("hex");
}
