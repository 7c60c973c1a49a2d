import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { readMigrations } from "../scripts/migrations.ts";
import { writeTokenTable } from "../scripts/site/tokens.ts";
import { slowestFirst } from "./slowest-first.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
writeTokenTable(`${ROOT}site`); // the Worker reads the token table among its static assets
// Secrets are bound below instead of read from the developer's machine.
process.env["WRANGLER_LOG"] = "error";
const secrets = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "a".repeat(32),
  PEER_OUT_US: "o".repeat(32),
  PEER_IN_US: "i".repeat(32),
  STRIPE_SECRET_KEY: "sk_test_0123456789",
  STRIPE_WEBHOOK_SECRETS: "whsec_0123456789,whsec_before0123",
};

const LONG = process.env["TURNPIKE_LONG"] ?? "";
/** Tests that take minutes or need an idle machine. Only `npm run test:long` runs them. */
const LONG_FILES = "test/**/*.long.test.ts";
/** Files of a long run: long tests, and tests that try more inputs in it (`test/effort.ts`). */
const inLongRun = (file: string): boolean =>
  file.endsWith(".long.test.ts") ||
  /from "[./]+\/(?:effort|find-faults|adapter-kit)\.ts"/.test(readFileSync(file, "utf8"));

function testsIn(include: string, exclude: readonly string[] = []) {
  if (LONG !== "1") return { include: [include], exclude: [...exclude, LONG_FILES] };
  return { include: globSync(include, { exclude }).filter(inLongRun) };
}

// Tests wait for events, however slow the machine is. CI's long tests end within minutes, so that a hanging one
// doesn't use all of its time.
const LONG_PATIENCE_MS = process.env["CI"] === undefined ? 4 * 3_600_000 : 900_000;
const PATIENCE_MS = LONG === "1" ? LONG_PATIENCE_MS : 120_000;
const patience = {
  testTimeout: PATIENCE_MS,
  hookTimeout: PATIENCE_MS,
  expect: { poll: { timeout: 100_000, interval: 20 } },
};

/** Files that run for a minute or more. */
const SLOWEST =
  /\/(?:alerts|soak|revocation-under-load|disconnect|global-revocation|dev|documents)\./;

export default defineConfig({
  root: ROOT,
  test: {
    sequence: { sequencer: slowestFirst(SLOWEST) },
    silent: "passed-only", // shows the Worker's log for failed tests
    // Alarms of the objects go on while workerd is being closed: a log line or an import of theirs finds
    // the runner gone. No test is in flight then; every other unhandled error fails the run.
    onUnhandledError: (error) => error.name !== "EnvironmentTeardownError",
    projects: [
      {
        root: ROOT,
        // Rules, routes, objects and the tidy test run inside workerd, as the EU region.
        plugins: [
          cloudflareTest({
            main: `${ROOT}test/workers/limited.ts`,
            wrangler: { configPath: `${ROOT}wrangler.toml`, environment: "eu" },
            miniflare: {
              bindings: {
                ...secrets,
                JURISDICTION: "",
                SANDBOX: "on",
                LOG_REQUESTS: "all",
                // No server listens there, because tests start their own Stripe.
                STRIPE_BASE_URL: "http://127.0.0.1:1",
                METRICS_DELAY_MS: "0", // counts appear immediately
                TEST_MIGRATIONS: readMigrations(),
              },
              outboundService: (request: Request) => {
                throw new Error(`a test called out: ${request.url}`);
              },
            },
          }),
        ],
        test: {
          name: "worker",
          env: { TURNPIKE_LONG: LONG, TURNPIKE_SEED: process.env["TURNPIKE_SEED"] ?? "" },
          ...patience,
          isolate: false,
          maxWorkers: 2,
          ...testsIn("test/**/*.test.ts", [
            "test/node/**",
            "test/clients/**",
            "test/browser/**",
            "test/**/*.pure.test.ts",
          ]),
          setupFiles: [`${ROOT}test/setup.ts`],
        },
      },
      {
        root: ROOT,
        // Two real regions over HTTP, the OpenAI SDK, the CLI and scripts run in plain Node.
        test: {
          name: "node",
          ...patience,
          isolate: false, // miniflare and wrangler take a second to load
          maxWorkers: 3, // each file mostly waits
          sequence: { groupOrder: 1 },
          ...testsIn("test/node/**/*.test.ts"),
        },
      },
      {
        root: ROOT,
        // Pure rules and fast-check models run in plain Node.
        test: {
          name: "pure",
          ...patience,
          restoreMocks: true, // spies last until the end of their test, as in test/setup.ts
          isolate: false, // a file loads in a second and takes less to run
          maxWorkers: 3, // the other projects leave a core idle while they wait
          sequence: { groupOrder: 1 },
          ...testsIn("test/**/*.pure.test.ts"),
        },
      },
    ],
  },
});
