import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { localSecrets, stateDirectory } from "../../scripts/dev-settings.ts";
import { lockState, readState, writeState } from "../../scripts/dev-state.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { devPorts } from "./support/dev-ports.ts";
import { startProgram } from "./support/program.ts";

const root = mkdtempSync(path.join(tmpdir(), "turnpike-state-"));
afterAll(() => removeDirectory(root));
afterEach(() => {
  vi.unstubAllEnvs();
});
const folder = (name: string): string => path.join(root, name);

/** Runs `npm start` with this state. Returns how it ended. */
async function started(directory: string) {
  const variables = { ...(await devPorts()).variables, DEV_DIR: directory };
  const program = startProgram(["scripts/dev.ts"], variables);
  return { code: await program.ended, output: program.output() };
}

it("npm start exits without any change if another npm start uses the same state", async () => {
  const directory = folder("taken");
  lockState(directory);
  const lock = readFileSync(path.join(directory, "lock.json"), "utf8");
  const { code, output } = await started(directory);
  expect(code).toBe(1);
  expect(output).toContain(`is in use by another npm start (process ${process.pid})`);
  expect(readFileSync(path.join(directory, "lock.json"), "utf8")).toBe(lock);
  expect(existsSync(path.join(directory, "secrets.json"))).toBe(false);
});

it("npm start replaces a lock whose process has ended or whose process ID belongs to another program", async () => {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  for (const owner of [
    { pid: child.pid, started: "1" },
    { pid: process.ppid, started: "1" },
  ]) {
    const directory = folder(`left-${owner.pid}`);
    writeState(directory, "lock.json", owner);
    lockState(directory);
    expect(readState(directory, "lock.json")).toMatchObject({ pid: process.pid });
  }
});

it("npm start rejects a state folder while workerd processes of an ended npm start still run", async () => {
  const leader = spawn(
    process.execPath,
    [
      "-e",
      "require('child_process').spawn('sleep', ['600'], { stdio: 'ignore' }).once('spawn', () => process.exit())",
    ],
    { detached: true, stdio: "ignore" },
  );
  await once(leader, "exit");
  const group = leader.pid ?? 0;
  const directory = folder("orphans");
  writeState(directory, "lock.json", { pid: group, started: "1" });
  expect(() => lockState(directory)).toThrow(`kill -9 -- -${group}`);
  process.kill(-group, "SIGKILL");
  // after init has reaped the process
  await vi.waitFor(() => lockState(directory), { timeout: 60_000 });
});

it("npm start uses a separate state folder for each pair of ports, unless DEV_DIR is set", () => {
  vi.stubEnv("DEV_DIR", undefined);
  const usual = stateDirectory();
  expect(path.basename(usual)).toBe(".dev");
  vi.stubEnv("EU_PORT", "8907");
  const one = stateDirectory();
  vi.stubEnv("US_PORT", "8908");
  const other = stateDirectory();
  expect(new Set([usual, one, other]).size).toBe(3);
  vi.stubEnv("DEV_DIR", root);
  expect(stateDirectory()).toBe(root);
});

it.each(["demo.json", "secrets.json"])(
  "npm start exits without any change if the state's %s can't be read",
  async (file) => {
    const directory = folder(`cut-${file}`);
    mkdirSync(directory);
    writeFileSync(path.join(directory, file), '{"eu":{"org_id":"');
    const { code, output } = await started(directory);
    expect(code).toBe(1);
    expect(output).toContain(`${file} cannot be read`);
    expect(readFileSync(path.join(directory, file), "utf8")).toBe('{"eu":{"org_id":"');
  },
);

it("npm start rejects a state folder whose secrets are lost", () => {
  const directory = folder("lost");
  mkdirSync(path.join(directory, "eu"), { recursive: true });
  expect(() => localSecrets(directory)).toThrow(/has lost its secrets\.json/);
});
