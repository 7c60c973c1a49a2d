import { readFileSync } from "node:fs";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { unstable_splitSqlQuery } from "wrangler";

process.env["WRANGLER_LOG"] = "error"; // secrets are bound below, not read from the developer's machine
const TEST_SCHEMA = unstable_splitSqlQuery(
  readFileSync(new URL("./schema.sql", import.meta.url), "utf8"),
);
const secrets = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "a".repeat(32),
  PEER_OUT_US: "o".repeat(32),
  PEER_IN_US: "i".repeat(32),
};

export default defineConfig({
  test: {
    silent: "passed-only", // what the Worker logs is shown for the tests that fail
    // Alarms of the objects go on while workerd is being closed: a log line or an import of theirs finds
    // the runner gone. No test is in flight then; every other unhandled error fails the run.
    onUnhandledError: (error) => error.name !== "EnvironmentTeardownError",
    projects: [
      {
        // rules, routes, objects and the tidy test: inside workerd, as the EU region
        plugins: [
          cloudflareTest({
            main: "./scripts/workers/limited.ts",
            wrangler: { configPath: "./wrangler.toml", environment: "eu" },
            miniflare: {
              bindings: {
                ...secrets,
                JURISDICTION: "",
                SANDBOX: "on",
                LOG_REQUESTS: "all",
                METRICS_DELAY_MS: "0", // what a test counts is there at once
                TEST_SCHEMA,
              },
              outboundService: (request: Request) => {
                throw new Error(`a test called out: ${request.url}`);
              },
            },
          }),
        ],
        test: {
          name: "worker",
          env: {
            TURNPIKE_LONG: process.env["TURNPIKE_LONG"] ?? "",
            TURNPIKE_SEED: process.env["TURNPIKE_SEED"] ?? "",
          },
          testTimeout: 60_000, // a test waits for what happens; how long that takes is the machine's matter
          hookTimeout: 60_000,
          isolate: false,
          maxWorkers: 1,
          include: ["test/**/*.test.ts"],
          exclude: ["test/node/**", "test/**/*.pure.test.ts"],
          setupFiles: ["./test/setup.ts"],
        },
      },
      {
        // two real regions over HTTP, the OpenAI SDK, CLI and scripts: plain Node
        test: {
          name: "node",
          maxWorkers: 2, // each file waits more than it computes
          sequence: { groupOrder: 1 },
          include: ["test/node/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // pure rules and fast-check models: plain Node; npm run test:long gives the models hours
        test: {
          name: "pure",
          sequence: { groupOrder: 2 },
          include: ["test/**/*.pure.test.ts"],
          testTimeout: process.env["TURNPIKE_LONG"] === "1" ? 4 * 3_600_000 : 60_000,
        },
      },
    ],
  },
});
