import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { run } from "../../../scripts/admin/command-line.ts";
import { runInProcess } from "./in-process.ts";
import type { Ran } from "./in-process.ts";
import { ADMIN_TOKEN, startPersistentRegion } from "./two-regions.ts";
import type { TestRegion } from "./two-regions.ts";

const ROOT = path.join(import.meta.dirname, "../../..");

type RunOptions = {
  /** Overrides TURNPIKE_URL and TURNPIKE_ADMIN_TOKEN, which are otherwise unset. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly input?: string;
};

/** Runs `npm run admin` until it exits. Fails if its output contains the token. */
export async function runAdmin(
  args: readonly string[],
  { variables = {}, input = "" }: RunOptions = {},
): Promise<Ran> {
  const { TURNPIKE_URL: _url, TURNPIKE_ADMIN_TOKEN: _token, ...inherited } = process.env;
  const child = spawn(process.execPath, ["scripts/admin.ts", ...args], {
    cwd: ROOT,
    env: { ...inherited, ...variables },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => {}); // a program that reads no input can have exited
  child.stdin.end(input);
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  for (const output of [out, err]) {
    assert.ok(!output.includes(ADMIN_TOKEN), "the output contains the token");
  }
  return { code: child.exitCode, out, err };
}

/** Runs the CLI in this process, for commands without input. Returns its output and exit code. */
export async function callAdmin(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  assert.ok(args[0] !== "settle", "settle reads stdin: it needs a process");
  const ran = await runInProcess(() => run(args), variables);
  for (const output of [ran.out, ran.err]) {
    assert.ok(!output.includes(ADMIN_TOKEN), "the output contains the token");
  }
  return ran;
}

/** An operator of one region with a valid token. Arguments of a command are separated by spaces. */
export type Operator = {
  readonly region: () => TestRegion;
  readonly runs: (command: string, input?: string) => Promise<Ran>;
  /** Runs a command that must succeed. Returns its output. */
  readonly prints: (command: string) => Promise<string>;
  /** Runs a command with `--json` and parses its output. */
  readonly answers: <T>(command: string) => Promise<T>;
  /** Returns the region's own response to an operator who reads this path. */
  readonly read: (path: string) => Promise<string>;
  /** Restarts the region on its state, with these bindings over its own. */
  readonly restart: (changed?: Readonly<Record<string, string>>) => Promise<void>;
  readonly stop: () => Promise<void>;
};

export async function startOperator(): Promise<Operator> {
  const kept = await startPersistentRegion();
  const variables = { TURNPIKE_URL: kept.region().url, TURNPIKE_ADMIN_TOKEN: ADMIN_TOKEN };
  const runs = (command: string, input = ""): Promise<Ran> => {
    const args = command.split(" ");
    const isProcess = input !== "" || args[0] === "settle";
    return isProcess ? runAdmin(args, { variables, input }) : callAdmin(args, variables);
  };
  const prints = async (command: string): Promise<string> => {
    const { code, out, err } = await runs(command);
    expect(code, `${command}: ${err}`).toBe(0);
    return out;
  };
  return {
    region: kept.region,
    runs,
    prints,
    answers: async <T>(command: string) => JSON.parse(await prints(`${command} --json`)) as T,
    read: async (at) => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const response = await fetch(kept.region().adminUrl + at, { headers });
      expect(response.status).toBe(200);
      return response.text();
    },
    restart: kept.restart,
    stop: kept.stop,
  };
}
