import { existsSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { devPorts } from "./support/dev-ports.ts";
import { startProgram } from "./support/program.ts";

const PRINT_AND_FAIL = "process.stdout.write(process.env.TMPDIR); process.exit(7)";

it("npm start names a taken port and the variable that moves it, and starts nothing", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const state = path.join(tmpdir(), `never-made-${port}`);
  const dev = startProgram(["scripts/dev.ts"], {
    ...(await devPorts()).variables, // the usual ones may be in use by whoever runs the tests
    US_PORT: String(port),
    DEV_DIR: state,
  });
  expect(await dev.ended).toBe(1);
  expect(dev.output()).toContain(`Port ${port} (US) is taken`);
  expect(dev.output()).toContain("US_PORT=");
  expect(existsSync(state)).toBe(false);
  await new Promise((resolve) => server.close(resolve));
});

it("npm start refuses a port that is none", async () => {
  const bad = startProgram(["scripts/dev.ts"], { EU_PORT: "8787x" });
  expect(await bad.ended).toBe(1);
  expect(bad.output()).toContain('EU_PORT must be a port from 1 to 65535, not "8787x"');
});

it("a command runs with a TMPDIR of its own, which is gone afterwards, and its exit code is kept", async () => {
  const run = startProgram(["scripts/on-tmpfs.ts", process.execPath, "-e", PRINT_AND_FAIL]);
  expect(await run.ended).toBe(7);
  expect(path.basename(run.output())).toMatch(/^turnpike-/);
  expect(existsSync(run.output())).toBe(false);
});
