import { getHealth } from "../admin-client.ts";
import { Refused, Unreachable } from "../admin/transport.ts";
import type { AdminClient } from "../admin/transport.ts";
import { addressFindings } from "./address-findings.ts";
import { aliasChanges } from "./alias-changes.ts";
import { error } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { readAppliedMigrations, migrationFindings } from "./migrations.ts";
import { staleFindings } from "./own-config.ts";
import type { Report } from "./report.ts";
import { askCloudflare, secretFindings } from "./secrets.ts";
import type { SecretNames } from "./secrets.ts";
import { databaseOf, readSettings } from "./settings.ts";
import { outlookOf } from "./worker-findings.ts";
import type { Outlook } from "./worker-findings.ts";
import { zoneFindings } from "./zone-findings.ts";
import type { CloudflareReader } from "./zone-findings.ts";
import { wranglerFindings } from "./wrangler-findings.ts";

export type CheckOptions = {
  /** The environment: a region's name, or another one's. */
  readonly env: string;
  /** The configuration, an absolute path. */
  readonly file: string;
  /** The names of set secrets; by default Cloudflare's. */
  readonly names?: SecretNames | undefined;
  /** The region as it runs now, to compare aliases with. */
  readonly running: AdminClient | null;
  /** Whether an embeddings alias may change its model. */
  readonly isAccepted: boolean;
  /** Unix ms. */
  readonly today: number;
  /** Reads the zones' settings; null without permission. By default they are not checked. */
  readonly zones?: CloudflareReader | null;
};

/** Everything that can be known before a deploy. Changes nothing. */
export async function check(options: CheckOptions): Promise<Report> {
  const { env, file, running, today } = options;
  const settings = readSettings(file, env);
  if (settings === null) {
    const remedy = `npx wrangler deploy --env ${env} --dry-run says why.`;
    const unread = error("wrangler.toml", `cannot be read for ${env}`, remedy);
    return { env, region: null, findings: [unread], aliases: new Map(), assumed: [] };
  }
  const { region } = settings;
  const known = options.names ?? (await askCloudflare(env, file));
  const outlook = outlookOf(settings, known, today);
  // If the secrets are given by hand, Cloudflare can't be asked anything.
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

/** Returns the changes for the running region's clients. */
async function liveFindings(
  { isAccepted }: CheckOptions,
  {
    region,
    running,
    outlook: { aliases: after, kindOf },
  }: { readonly region: string; readonly running: AdminClient; readonly outlook: Outlook },
): Promise<Finding[]> {
  try {
    const health = await getHealth(running);
    if (health.region !== region) {
      const remedy = `Give the address of ${region}.`;
      return [error("--live", `is the address of ${health.region}, not of ${region}`, remedy)];
    }
    if (after === null) return []; // the reason is already reported
    const now = new Map(Object.entries(health.aliases));
    return aliasChanges({ now, after, kindOf, isAccepted });
  } catch (thrown) {
    if (!(thrown instanceof Refused || thrown instanceof Unreachable)) throw thrown;
    const status = thrown instanceof Refused ? `answered ${thrown.status}` : "did not answer";
    const remedy = "Look at the address and at TURNPIKE_ADMIN_TOKEN, then try again.";
    return [error("--live", `${status}, so aliases could not be compared`, remedy)];
  }
}
