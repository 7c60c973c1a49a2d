import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { writeTokenTable } from "../../scripts/site/tokens.ts";

// The Worker reads the token table among its static assets.
writeTokenTable(fileURLToPath(new URL("../../site", import.meta.url)));

/** Configuration of `npm run test:clients`: installed clients with both regions on this machine. */
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
