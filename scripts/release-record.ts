// npm run release:record: records this checkout's deployment and a state from it as the last
// release. test/node/release.test.ts checks upgrades and rollbacks with them.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { RELEASE } from "../src/shared/release.ts";
import { bundleWorker } from "./bundle.ts";
import { readMigrations } from "./migrations.ts";
import { startReleaseRegion } from "../test/node/support/release-region.ts";
import { LAST_RELEASE } from "../test/node/support/release-recorded.ts";
import type { Recorded } from "../test/node/support/release-recorded.ts";
import { readAfterEvents, createSampleData } from "../test/node/support/release-data.ts";
import { HOST } from "./region.ts";
import { removeDirectory, temporaryDirectory } from "./tmpfs.ts";

const ROOT = path.join(import.meta.dirname, "..");

const directory = temporaryDirectory("turnpike-release-");
process.on("exit", () => removeDirectory(directory));

const code = await bundleWorker(true);
const migrations = readMigrations();
const hook = createServer((_request, response) => response.end());
await new Promise<void>((listening) => hook.listen(0, HOST, listening));
const hookUrl = `http://${HOST}:${(hook.address() as AddressInfo).port}/hook`;
const place = await startReleaseRegion({ code, migrations }, directory);
const world = await createSampleData(place.url, hookUrl);
const seen = await readAfterEvents(place.url, world);
const at = Date.now();
await place.miniflare.dispose();
hook.close();

rmSync(LAST_RELEASE, { recursive: true, force: true });
mkdirSync(LAST_RELEASE, { recursive: true });
const into = (name: string): string => path.join(LAST_RELEASE, name);
writeFileSync(into("worker.js.gz"), gzipSync(code, { level: 9 }));
execFileSync("tar", ["-czf", into("state.tar.gz"), "-C", directory, "."]);
cpSync(path.join(ROOT, "wrangler.toml"), into("wrangler.toml"));
const recorded: Recorded = { version: RELEASE, migrations, at, world, seen };
writeFileSync(into("recorded.json.gz"), gzipSync(JSON.stringify(recorded)));
console.log(`recorded ${RELEASE} in ${path.relative(ROOT, LAST_RELEASE)}`);
