import { CRON_SCHEDULES } from "../../src/operator/crons.ts";
import type { Unstable_Config } from "wrangler";
import { regionRowOf } from "../../src/shared/regions.ts";
import { OWN_FILE } from "./files.ts";
import { error, findingsThatHold, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { databaseOf } from "./settings.ts";
import type { Settings } from "./settings.ts";

const DAY_MS = 86_400_000;
const COMPATIBILITY_DAYS_MAX = 365;
/** Durable Object classes by binding. */
const OBJECTS = {
  KEY_REGISTER: "KeyRegister",
  WALLET: "Wallet",
  REGION_OUTBOX: "RegionOutbox",
  REGION_METRICS: "RegionMetrics",
  CONSOLE_SESSION: "ConsoleSession",
  WEBHOOK_DELIVERIES: "WebhookDeliveries",
  KEPT_RESPONSES: "KeptResponses",
  PAYMENTS: "Payments",
};
/**
 * The required flags. The first lets the gateway notice disconnects. Without the second, fetch can bypass a Worker.
 */
const FLAGS = ["enable_request_signal", "global_fetch_strictly_public"];

/**
 * Reports problems of wrangler.toml for this region, except addresses and variables. `today` is
 * Unix ms.
 */
export function wranglerFindings(settings: Settings, today: number): Finding[] {
  const { config } = settings;
  return [
    ...databaseFindings(settings),
    ...dateFindings(config, today),
    ...objectFindings(config),
    ...platformFindings(config),
    ...assetFindings(config),
  ];
}

/** API paths that must reach the Worker instead of static assets. */
const WORKER_FIRST = [
  "/v1/*",
  "/admin/v1/*",
  "/internal/*",
  "/console/api/*",
  "/payments/*",
  "/healthz",
];

function assetFindings({ assets }: Unstable_Config): Finding[] {
  if (assets?.directory === undefined) {
    const remedy = 'Add [assets] with directory = "site", as in the repository\'s wrangler.toml.';
    return [
      warning("[assets]", "is missing, so there are no documents and no /openapi.json", remedy),
    ];
  }
  if (assets.binding !== "ASSETS") {
    const remedy = 'Add binding = "ASSETS", as in the repository\'s wrangler.toml.';
    return [
      error("[assets] binding", "is not ASSETS, so most models can't embed token IDs", remedy),
    ];
  }
  const first = assets.run_worker_first;
  const missing = WORKER_FIRST.filter((path) => !Array.isArray(first) || !first.includes(path));
  if (first === true || missing.length === 0) return [];
  const remedy =
    "Add it, so that API requests reach the Worker before Cloudflare looks for an asset.";
  return [error("[assets] run_worker_first", `lacks ${missing.join(", ")}`, remedy)];
}

function databaseFindings(settings: Settings): Finding[] {
  const { env, region, config, others } = settings;
  const { jurisdiction } = regionRowOf(region);
  const where = `[[env.${env}.d1_databases]]`;
  const database = config.d1_databases.find(({ binding }) => binding === "DB");
  if (database === undefined) {
    return [error(where, "has no database with the binding DB", "Add it, as in the other region.")];
  }
  const id = database.database_id ?? "";
  const name = databaseOf(settings);
  if (isPlaceholder(id)) {
    return [
      error(
        `${where} database_id`,
        id === "" ? "is not set" : "is a placeholder",
        `npx wrangler d1 create ${name}${jurisdiction === null ? "" : ` --jurisdiction ${jurisdiction}`}, and put the printed ID into ${OWN_FILE}. Then run npm run deploy:config and npx wrangler d1 migrations apply ${name} --env ${env} --remote`,
      ),
    ];
  }
  const sharing = [...others].filter(([, other]) =>
    other.d1_databases.some((one) => one.database_id === id),
  );
  return sharing.map(([other]) =>
    error(
      `${where} database_id`,
      `is also the database of ${other}`,
      "Each region needs its own database. npx wrangler d1 list shows them.",
    ),
  );
}

/**
 * Reports whether an ID is a placeholder: not a UUID, or one digit throughout as in the
 * repository's file.
 */
function isPlaceholder(id: string): boolean {
  const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
  return !isUuid || new Set(id.replaceAll("-", "")).size === 1;
}

function dateFindings(config: Unstable_Config, today: number): Finding[] {
  const where = "compatibility_date";
  const remedy = "Set it to a date for which npm test passes.";
  const date = config.compatibility_date ?? "";
  const day = /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(date) : NaN;
  if (Number.isNaN(day)) return [error(where, "is not a date", remedy)];
  if (day > today) return [error(where, `${date} is in the future`, remedy)];
  const isOld = today - day > COMPATIBILITY_DAYS_MAX * DAY_MS;
  return isOld ? [warning(where, `${date} is more than a year old`, remedy)] : [];
}

function objectFindings(config: Unstable_Config): Finding[] {
  const made = new Set<string>();
  for (const step of config.migrations) {
    for (const name of step.new_sqlite_classes ?? []) made.add(name);
    for (const { from, to } of step.renamed_classes ?? []) if (made.delete(from)) made.add(to);
    for (const name of step.deleted_classes ?? []) made.delete(name);
  }
  return Object.entries(OBJECTS).flatMap(([binding, name]) => {
    const isBound = config.durable_objects.bindings.some(
      (one) => one.name === binding && one.class_name === name,
    );
    return findingsThatHold(
      [
        !isBound,
        error(
          "durable_objects",
          `do not bind ${name} as ${binding}`,
          `Add { name = "${binding}", class_name = "${name}" }.`,
        ),
      ],
      [
        !made.has(name),
        error(
          "[[migrations]]",
          `don't create ${name} with SQLite`,
          `Add a migration with a new tag and new_sqlite_classes = ["${name}"]. A class created without SQLite can't use it later.`,
        ),
      ],
    );
  });
}

function platformFindings(config: Unstable_Config): Finding[] {
  const { compatibility_flags, triggers, version_metadata } = config;
  const missing = FLAGS.filter((flag) => !compatibility_flags.includes(flag));
  const crons = Object.values(CRON_SCHEDULES).filter(
    (cron) => triggers.crons?.includes(cron) !== true,
  );
  return [
    ...missing.map((flag) => error("compatibility_flags", `lack ${flag}`, `Add "${flag}".`)),
    ...findingsThatHold(
      [
        crons.length > 0,
        error(
          "triggers",
          `lack the schedule ${crons.join(" and ")}, so sweeps of wallets, outboxes or payments don't run`,
          `Add crons = ${JSON.stringify(Object.values(CRON_SCHEDULES))}.`,
        ),
      ],
      [
        version_metadata?.binding !== "CF_VERSION",
        warning(
          "version_metadata",
          "does not bind CF_VERSION, so /healthz can't return the running version",
          'Add binding = "CF_VERSION".',
        ),
      ],
    ),
  ];
}
