import { defineConfig } from "vitest/config";

/** `npm run test:browser`: the console and the documents as a browser shows them. */
export default defineConfig({
  test: {
    name: "browser",
    include: ["test/browser/*.test.ts"],
    globalSetup: ["test/browser/unpack-browser.ts"],
    isolate: false,
    maxWorkers: 2, // each has regions and a browser of its own
    testTimeout: 120_000,
    hookTimeout: 300_000, // a site, two regions and a browser are started
    expect: { poll: { timeout: 60_000, interval: 50 } },
  },
});
