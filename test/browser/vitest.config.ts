import { defineConfig } from "vitest/config";
import { slowestFirst } from "../slowest-first.ts";

/** Configuration of `npm run test:browser`: the console and the documentation in a browser. */
export default defineConfig({
  test: {
    name: "browser",
    sequence: { sequencer: slowestFirst(/\/(?:paid-buttons|accessible)/) },
    include: ["test/browser/*.test.ts"],
    globalSetup: ["test/browser/prepare.ts"],
    isolate: false,
    maxWorkers: 2, // each worker has its own regions and browser
    testTimeout: 300_000,
    hookTimeout: 300_000, // starting a site, two regions and a browser takes time
    expect: { poll: { timeout: 60_000, interval: 50 } },
  },
});
