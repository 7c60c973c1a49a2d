import type { CallKind } from "../../src/shared/kinds.ts";
import { callAdmin } from "../admin-client.ts";
import { Refused, Unreachable } from "../admin/transport.ts";
import type { AdminClient } from "../admin/transport.ts";
import { addressFindings } from "./address-findings.ts";
import { error, note, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { readAppliedMigrations, migrationFindings } from "./migrations.ts";
import { staleFindings } from "./own-config.ts";
import type { Report } from "./report.ts";
import { askCloudflare, secretFindings } from "./secrets.ts";
import type { SecretNames } from "./secrets.ts";
import { databaseOf, readSettings } from "./settings.ts";
import { parseOutlook } from "./worker-findings.ts";
import type { Outlook } from "./worker-findings.ts";
import { zoneFindings } from "./zone-findings.ts";
import type { CloudflareReader } from "./zone-findings.ts";
import { wranglerFindings } from "./wrangler-findings.ts";

export type CheckOptions = {
  /** The environment, usually a region's name. */
  readonly env: string;
  /** The absolute path of the configuration. */
  readonly file: string;
  /** Names of secrets that are set. By default, read from Cloudflare. */
  readonly names?: SecretNames | undefined;
  /** The running region, for comparing aliases. */
  readonly running: AdminClient | null;
  /** Whether an embeddings alias may change its model. */
  readonly isAccepted: boolean;
  /** Unix ms. */
  readonly today: number;
  /** Reads the zones' settings, or null without permission. By default, zones aren't checked. */
  readonly zones?: CloudflareReader | null;
};

/** Runs all checks before a deploy. Changes nothing. */
export async function check(options: CheckOptions): Promise<Report> {
  const { env, file, running, today } = options;
  const settings = readSettings(file, env);
  if (settings === null) {
    const remedy = `npx wrangler deploy --env ${env} --dry-run shows the reason.`;
    const unread = error("wrangler.toml", `cannot be read for ${env}`, remedy);
    return { env, region: null, findings: [unread], aliases: new Map(), assumed: [] };
  }
  const { region } = settings;
  const known = options.names ?? (await askCloudflare(env, file));
  const outlook = parseOutlook(settings, known, today);
  // If secrets are given by hand, there is no access to Cloudflare.
  const applied = options.names === undefined ? await readAppliedMigrations(env, file) : undefined;
  const findings = [
    ...staleFindings(file),
    ...wranglerFindings(settings, today),
    ...addressFindings(settings),
    ...(options.zones === undefined ? [] : await zoneFindings(settings, options.zones)),
    ...outlook.findings,
    ...secretFindings(settings, known),
    ...migrationFindings(env, databaseOf(settings), applied),
    ...(running === null ? [] : await liveFindings(options, { region, running, outlook })),
  ];
  return { env, region, findings, aliases: outlook.aliases ?? new Map(), assumed: outlook.assumed };
}

/** Returns changes that affect the running region's clients. */
async function liveFindings(
  { isAccepted }: CheckOptions,
  {
    region,
    running,
    outlook: { aliases: after, kindOf },
  }: { readonly region: string; readonly running: AdminClient; readonly outlook: Outlook },
): Promise<Finding[]> {
  try {
    const health = await callAdmin(running, "GET /health");
    if (health.region !== region) {
      const remedy = `Pass the address of ${region}.`;
      return [error("--live", `is the address of ${health.region}, not of ${region}`, remedy)];
    }
    if (after === null) return []; // the reason is already reported
    const now = new Map(Object.entries(health.aliases));
    return aliasChanges({ now, after, kindOf, isAccepted });
  } catch (thrown) {
    if (!(thrown instanceof Refused || thrown instanceof Unreachable)) throw thrown;
    const status =
      thrown instanceof Refused ? `responded with ${thrown.status}` : "did not respond";
    const remedy = "Check the address and TURNPIKE_ADMIN_TOKEN, then try again.";
    return [error("--live", `${status}, so aliases could not be compared`, remedy)];
  }
}

type Aliases = ReadonlyMap<string, string>;
type AliasChange = {
  /** Aliases of the running region. */
  readonly now: Aliases;
  /** Aliases after the deploy. */
  readonly after: Aliases;
  readonly kindOf: (name: string) => CallKind | undefined;
  readonly isAccepted: boolean;
};

/**
 * Reports aliases that would mean another model, or none, after the deploy. A change of an
 * embeddings alias is an error unless the operator accepts it, because vectors of two models don't
 * compare. Aliases of unknown kind count as embeddings. New aliases affect nobody.
 */
export function aliasChanges({ now, after, kindOf, isAccepted }: AliasChange): Finding[] {
  return [...now].flatMap(([alias, before]) => {
    const then = after.get(alias);
    if (then === before) return [];
    const change = `means ${before} now and would mean ${then ?? "no model"} after the deploy`;
    const kind = kindOf(alias) ?? kindOf(before) ?? (then === undefined ? undefined : kindOf(then));
    if (kind === "chat") {
      const remedy = `Pin it in ALIASES if it must stay: {"${alias}":"${before}"}.`;
      return [(then === undefined ? warning : note)(alias, change, remedy)];
    }
    if (isAccepted) return [warning(alias, change, "Accepted with --accept-alias-change.")];
    return [
      error(
        alias,
        `${change}: new vectors could not be compared with those that clients have stored`,
        `Pin it: set ALIASES to {"${alias}":"${before}"}. Or tell every client, then accept the change with --accept-alias-change.`,
      ),
    ];
  });
}
