import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseEnv } from "node:util";
import type { LinkSecrets, RegionName } from "./region.ts";

export const ROOT = path.join(import.meta.dirname, "..");
const PORTS = { eu: 8787, us: 8788 } as const;

/** What a developer may set for both regions, in the environment or in `.dev.vars`. */
const VARS = [
  "MODELS",
  "PROVIDERS",
  "ALIASES",
  "RESIDENCY",
  "SANDBOX",
  "MARKUP_PERCENT",
  "DEFAULT_MAX_OUTPUT",
];
const PROVIDER_SECRETS = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];

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

/** Vars and provider keys of the developer: `.dev.vars`, overridden by the environment. */
export function developerBindings(): Record<string, string> {
  const file = path.join(ROOT, ".dev.vars");
  const fromFile = existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {};
  const providers = process.env["PROVIDERS"] ?? fromFile["PROVIDERS"] ?? "[]";
  const names = [...VARS, ...PROVIDER_SECRETS, ...secretsNamedBy(providers)];
  const fromEnvironment = names.map((name) => [name, process.env[name] ?? ""]);
  const entries = [...Object.entries(fromFile), ...fromEnvironment];
  return Object.fromEntries(entries.filter(([, value]) => value !== "")) as Record<string, string>;
}

/** The variables that the entries of PROVIDERS name as their secret; the Worker reports bad JSON. */
function secretsNamedBy(providers: string): string[] {
  return [...providers.matchAll(/"secret"\s*:\s*"([A-Za-z0-9_]+)"/g)].map(([, name]) => name ?? "");
}
