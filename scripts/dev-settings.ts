import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { LinkSecrets } from "./region.ts";
import type { RegionName } from "./region-names.ts";

export const ROOT = path.join(import.meta.dirname, "..");
const PORTS = { eu: 8787, us: 8788 } as const;

/** Where the state of the local regions is kept. */
export function stateDirectory(): string {
  return path.resolve(ROOT, process.env["DEV_DIR"] ?? ".dev");
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

/** Made once and kept readable for their owner alone; a file from before one of them is completed. */
export function localSecrets(directory: string): LocalSecrets {
  const file = path.join(directory, "secrets.json");
  const kept = existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as Partial<LocalSecrets>)
    : {};
  const secrets = {
    KEY_SECRETS: `a:${newSecret()}`,
    ADMIN_TOKEN: newSecret(),
    EU_SIGNS: newSecret(),
    US_SIGNS: newSecret(),
    ...kept,
  };
  if (Object.keys(kept).length < Object.keys(secrets).length) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(file, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  }
  return secrets;
}

function newSecret(): string {
  return randomBytes(32).toString("hex");
}
