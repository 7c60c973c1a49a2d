import { error, note, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { addressesOf } from "./settings.ts";
import type { Settings } from "./settings.ts";

/**
 * Reads a path below https://api.cloudflare.com/client/v4. Returns the response's `result`, or null
 * without permission.
 */
export type CloudflareReader = (path: string) => Promise<unknown>;

const TIMEOUT_MS = 20_000;

/** Returns a reader with this token, or null without one. Sends the token nowhere else. */
export function cloudflareReader(token: string | undefined): CloudflareReader | null {
  if (token === undefined || token === "") return null;
  return async (path) => {
    try {
      const response = await fetch(`https://api.cloudflare.com/client/v4${path}`, {
        headers: { authorization: `Bearer ${token}` },
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const { result } = (await response.json()) as { result?: unknown };
      return response.ok ? (result ?? null) : null;
    } catch {
      return null;
    }
  };
}

const BY_HAND =
  "In the zone of each region's host, under Security > Settings, turn off Browser Integrity Check, Bot Fight Mode and Under Attack mode. docs/deploy.md explains how to exclude only these hosts.";

/**
 * Reports zone settings that challenge programs, which would block the other region and all
 * clients. Returns a note if they can't be read.
 */
export async function zoneFindings(
  { config }: Settings,
  read: CloudflareReader | null,
): Promise<Finding[]> {
  const hosts = addressesOf(config).map(({ host }) => host);
  const unread = (what: string): Finding =>
    note("zone", `of ${hosts.join(", ")} could not be read (${what})`, BY_HAND);
  if (read === null) return [unread("CLOUDFLARE_API_TOKEN is not set")];
  const findings: Finding[] = [];
  for (const host of hosts) {
    const id = await zoneOf(host, read);
    if (id === null) return [unread("the token can't read the zone")];
    findings.push(...(await settingsOf(host, (path) => read(`/zones/${id}${path}`), unread)));
  }
  return findings;
}

async function settingsOf(
  host: string,
  read: CloudflareReader,
  unread: (what: string) => Finding,
): Promise<Finding[]> {
  const [check, level, bots] = await Promise.all([
    read("/settings/browser_check"),
    read("/settings/security_level"),
    read("/bot_management"),
  ]);
  const findings: Finding[] = [];
  if (valueOf(check) === "on") {
    findings.push(
      warning(
        `zone of ${host}`,
        "has Browser Integrity Check on, which blocks programs because of their headers",
        BY_HAND,
      ),
    );
  }
  if (valueOf(level) === "under_attack") {
    findings.push(
      error(`zone of ${host}`, "is in Under Attack mode, which blocks all programs", BY_HAND),
    );
  }
  if (isObject(bots) && bots["fight_mode"] === true) {
    findings.push(
      error(
        `zone of ${host}`,
        "has Bot Fight Mode on, which blocks the other region and clients, without exceptions",
        BY_HAND,
      ),
    );
  }
  const silent = [
    ...(check === null ? ["Browser Integrity Check"] : []),
    ...(level === null ? ["Under Attack mode"] : []),
    ...(bots === null ? ["Bot Fight Mode"] : []),
  ];
  if (silent.length > 0) {
    findings.push(
      unread(`${silent.join(", ")}: the token needs Zone Settings Read and Bot Management Read`),
    );
  }
  return findings;
}

/** Returns the ID of a host's zone: the longest name that the token can read. */
async function zoneOf(host: string, read: CloudflareReader): Promise<string | null> {
  const labels = host.replace(/:\d+$/, "").split(".");
  for (let at = 0; at < labels.length - 1; at++) {
    const zones = await read(`/zones?name=${encodeURIComponent(labels.slice(at).join("."))}`);
    const id: unknown = Array.isArray(zones) && isObject(zones[0]) ? zones[0]["id"] : undefined;
    if (typeof id === "string" && /^\w+$/.test(id)) return id;
  }
  return null;
}

function valueOf(setting: unknown): unknown {
  return isObject(setting) ? setting["value"] : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
