import { accessSync, constants, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const FREE_BYTES_MIN = 512 * 1024 * 1024;

/**
 * Creates an empty directory, in memory if this machine has a writable tmpfs with room. An fsync is
 * free there, but limits every measured write on a disk.
 */
export function temporaryDirectory(prefix: string): string {
  return mkdtempSync(path.join(tmpfsMount() ?? tmpdir(), prefix));
}

/** Removes a directory with its contents. Retries while a process still closes its files. */
export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** Returns the mount of a usable tmpfs, preferably /dev/shm, or null. */
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
    return []; // /proc/mounts exists only on Linux
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
