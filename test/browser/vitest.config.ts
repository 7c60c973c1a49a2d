import { defineConfig } from "vitest/config";

/** `npm run test:browser`: the console and the documents as a browser shows them. */
export default defineConfig({
  test: {
    name: "browser",
    include: ["test/browser/*.test.ts"],
    isolate: false,
    maxWorkers: 1,
    testTimeout: 120_000,
    hookTimeout: 300_000, // a site, two regions and a browser are started
    expect: { poll: { timeout: 60_000, interval: 50 } },
  },
});
