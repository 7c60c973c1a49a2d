import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { hasGroup } from "./dev-group.ts";

/** The reason why a state can't be used, as a message for the user. */
export class StateRefused extends Error {}

/** A process. `started` is its start time in the system's ticks, or "" if unknown. */
type Owner = { readonly pid: number; readonly started: string };

const FILE = "lock.json";
const TRIES_MAX = 3;

/**
 * Locks a folder's state for this process, because two programs can't share a ledger. Takes over
 * the lock of an ended process. Throws `StateRefused` if another process holds it.
 */
export function lockState(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const file = path.join(directory, FILE);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    if (tryLock(file)) return;
    const owner = ownerIn(file);
    if (owner !== null && isAlive(owner)) {
      throw new StateRefused(
        `The state in ${directory} is in use by another npm start (process ${owner.pid}). Stop that one, or start this one on other ports, which have a state of their own: EU_PORT=8907 US_PORT=8908 npm start`,
      );
    }
    if (owner !== null && startOf(owner.pid) === "" && hasGroup(owner.pid)) {
      throw new StateRefused(
        `The state in ${directory} is still in use: the npm start that had it (process ${owner.pid}) is gone, but its workerd processes run. End them first: kill -9 -- -${owner.pid}`,
      );
    }
    rmSync(file, { force: true });
  }
  throw new StateRefused(`The state in ${directory} cannot be locked: ${file} comes back.`);
}

function tryLock(file: string): boolean {
  const own: Owner = { pid: process.pid, started: startOf(process.pid) };
  try {
    writeFileSync(file, JSON.stringify(own), { flag: "wx" });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
  process.once("exit", () => {
    if (ownerIn(file)?.pid === process.pid) rmSync(file, { force: true });
  });
  return true;
}

function ownerIn(file: string): Owner | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Owner;
  } catch {
    return null;
  }
}

/** Reports whether the process still runs. Compares start times, because IDs are reused. */
function isAlive({ pid, started }: Owner): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
  return startOf(pid) === started;
}

/**
 * Returns the start time of a process (field 22 of /proc/<pid>/stat), or "" if unknown. The process
 * name before the field can contain anything.
 */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

/**
 * Reads a file of the state, or returns null if it is missing. Throws `StateRefused` if it is
 * invalid.
 */
export function readState(directory: string, name: string): unknown {
  const file = path.join(directory, name);
  if (!existsSync(file)) return null;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as unknown;
  } catch {
    throw new StateRefused(
      `${file} cannot be read. Put it back as it was, or forget the whole state: npm start -- --clean`,
    );
  }
}

/** Replaces a file of the state atomically. Only its owner can read it. */
export function writeState(directory: string, name: string, value: object): void {
  const file = path.join(directory, name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
