import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { writeTokenTable } from "../../scripts/site/tokens.ts";

writeTokenTable(fileURLToPath(new URL("../../site", import.meta.url))); // the Worker reads it among its static assets

/** `npm run test:clients`: clients as they are installed, against both regions on this machine. */
export default defineConfig({
  test: {
    name: "clients",
    include: ["test/clients/*.test.ts"],
    isolate: false,
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
