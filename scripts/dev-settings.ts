import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import { readState, StateRefused, writeState } from "./dev-state.ts";
import type { LinkSecrets } from "./region.ts";
import type { RegionName } from "./region-names.ts";

export const ROOT = path.join(import.meta.dirname, "..");
const PORTS = { eu: 8787, us: 8788 } as const;

/** Where the state of the local regions is kept: DEV_DIR, else a folder of its own for each pair of ports. */
export function stateDirectory(): string {
  const { DEV_DIR } = process.env;
  if (DEV_DIR !== undefined && DEV_DIR !== "") return path.resolve(ROOT, DEV_DIR);
  const [eu, us] = [portOf("eu"), portOf("us")];
  const isUsual = eu === PORTS.eu && us === PORTS.us;
  const isPair = typeof eu === "number" && typeof us === "number" && !isUsual;
  return path.join(ROOT, ".dev", ...(isPair ? [`ports-${eu}-${us}`] : []));
}

/** The variable that chooses a region's port. */
export function portVariable(region: RegionName): "EU_PORT" | "US_PORT" {
  return region === "eu" ? "EU_PORT" : "US_PORT";
}

/** A region's port, or what is wrong with the variable that names it. */
export function portOf(region: RegionName): number | { readonly problem: string } {
  const text = process.env[portVariable(region)] ?? "";
  const port = text === "" ? PORTS[region] : Number(text);
  if (Number.isSafeInteger(port) && port > 0 && port < 65_536) return port;
  return { problem: `${portVariable(region)} must be a port from 1 to 65535, not "${text}".` };
}

/** The secrets of the local regions. */
export type LocalSecrets = LinkSecrets & {
  readonly KEY_SECRETS: string;
  readonly ADMIN_TOKEN: string;
};

/**
 * Made once and kept readable for their owner alone; a file from before one of them is completed. Throws
 * `StateRefused` for one that cannot be read, and where regions have a state whose secrets are gone.
 */
export function localSecrets(directory: string): LocalSecrets {
  const kept = readState(directory, "secrets.json") as Partial<LocalSecrets> | null;
  if (kept === null && ["eu", "us"].some((name) => existsSync(path.join(directory, name)))) {
    throw new StateRefused(
      `The state in ${directory} has lost its secrets.json, without which no key of it is good. Put it back, or forget the state: npm start -- --clean`,
    );
  }
  const secrets = {
    KEY_SECRETS: `a:${newSecret()}`,
    ADMIN_TOKEN: newSecret(),
    EU_SIGNS: newSecret(),
    US_SIGNS: newSecret(),
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
