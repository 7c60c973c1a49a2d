import { accessSync, constants, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const FREE_BYTES_MIN = 512 * 1024 * 1024;

/**
 * A new empty directory in memory when this machine has a writable tmpfs with room (an fsync there
 * costs nothing, on a disk it bounds every measured write), else under the usual temporary directory.
 */
export function temporaryDirectory(prefix: string): string {
  return mkdtempSync(path.join(tmpfsMount() ?? tmpdir(), prefix));
}

/** Removes a directory and what is in it; a process that is still closing its files gets a moment. */
export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** Returns the mount of a usable tmpfs, /dev/shm first; null without one (or without /proc/mounts). */
export function tmpfsMount(): string | null {
  const mounts = readMounts()
    .filter(([, , type, options]) => type === "tmpfs" && options?.split(",").includes("rw"))
    .map(([, mount]) => mount ?? "")
    .toSorted((a, b) => Number(b === "/dev/shm") - Number(a === "/dev/shm"));
  return mounts.find(hasRoom) ?? null;
}

function readMounts(): string[][] {
  try {
    return readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" "));
  } catch {
    return []; // not Linux
  }
}

function hasRoom(mount: string): boolean {
  try {
    accessSync(mount, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(mount);
    return bavail * bsize >= FREE_BYTES_MIN;
  } catch {
    return false;
  }
}
