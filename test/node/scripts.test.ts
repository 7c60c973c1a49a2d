import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { isPortInUse } from "../../scripts/ports.ts";
import { HOST } from "../../scripts/region.ts";
import { openApiText } from "../../scripts/openapi.ts";
import { writeApiTypes } from "../../scripts/site/console.ts";
import { devPorts } from "./support/dev-ports.ts";
import { startProgram } from "./support/program.ts";

const PRINT_AND_FAIL = "process.stdout.write(process.env.TMPDIR); process.exit(7)";

it("npm start names a taken port and the variable that sets it, and starts nothing", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const state = path.join(tmpdir(), `never-made-${port}`);
  const dev = startProgram(["scripts/dev.ts"], {
    ...(await devPorts()).variables, // the default ports can be in use
    US_PORT: String(port),
    DEV_DIR: state,
  });
  expect(await dev.ended).toBe(1);
  expect(dev.output()).toContain(`Port ${port} (US) is taken`);
  const hint = Number(/US_PORT=(\d+) npm start/.exec(dev.output())?.[1]);
  expect(await isPortInUse(hint)).toBe(false);
  expect(existsSync(state)).toBe(false);
  await new Promise((resolve) => server.close(resolve));
});

it("npm start suggests a port only if this port and the identity provider's port are free", async () => {
  const { ports, variables } = await devPorts();
  const taken = [0, 10, 20, 30].map((offset) => createServer().listen(ports.eu + offset, HOST));
  await Promise.all(taken.map((server) => once(server, "listening")));
  const dev = startProgram(["scripts/dev.ts"], variables);
  expect(await dev.ended).toBe(1);
  expect(dev.output()).toContain(`Port ${ports.eu} (EU) is taken`);
  const hint = Number(/EU_PORT=(\d+) npm start/.exec(dev.output())?.[1]);
  expect(await Promise.all([hint, hint + 10].map(isPortInUse))).toEqual([false, false]);
  for (const server of taken) server.close();
});

it("npm start reports a state folder that can't be written, without a stack trace", async () => {
  const { variables } = await devPorts();
  const file = fileURLToPath(import.meta.url);
  const dev = startProgram(["scripts/dev.ts"], { ...variables, DEV_DIR: path.join(file, "state") });
  expect(await dev.ended).toBe(1);
  expect(dev.output()).toContain("Choose another folder for the state with DEV_DIR");
  expect(dev.output()).not.toContain("    at ");
});

it("npm start rejects an invalid port", async () => {
  const bad = startProgram(["scripts/dev.ts"], { EU_PORT: "8787x" });
  expect(await bad.ended).toBe(1);
  expect(bad.output()).toContain('EU_PORT must be a port from 1 to 65535, not "8787x"');
});

it("the script on-tmpfs runs a command with a temporary TMPDIR, deletes this folder, and returns the exit code", async () => {
  const run = startProgram(["scripts/on-tmpfs.ts", process.execPath, "-e", PRINT_AND_FAIL]);
  expect(await run.ended).toBe(7);
  expect(path.basename(run.output())).toMatch(/^turnpike-/);
  expect(existsSync(run.output())).toBe(false);
});

it("a build of the site doesn't rewrite unchanged API types, so that wrangler dev doesn't loop", async () => {
  const types = path.join(import.meta.dirname, "../../src/console/browser/api/types.ts");
  const openApi = await openApiText();
  writeApiTypes(openApi);
  const written = statSync(types).mtimeMs;
  writeApiTypes(openApi);
  expect(statSync(types).mtimeMs).toBe(written);
});
