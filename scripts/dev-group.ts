import { spawn } from "node:child_process";
import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const PARENT_CHECK_MS = 500;
/**
 * The environment variable that marks the leader of the process group. Its value is the ID of the
 * process that started the leader.
 */
const MARK = "TURNPIKE_DEV_GROUP";
const PARENT_PID = Number(process.env[MARK] ?? process.ppid);

/** Reports whether this process leads the group that `runInGroup` started. */
export function isInGroup(): boolean {
  return process.env[MARK] !== undefined;
}

/**
 * Runs this program again as the leader of its own process group, forwards signals and exits with
 * its code. Once the leader ends, kills its remaining workerd processes, which would otherwise keep
 * writing to the state.
 */
export function runInGroup(): void {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    detached: true, // creates a process group
    stdio: "inherit",
    env: { ...process.env, [MARK]: String(process.pid) },
  });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  // npm can be killed without forwarding the signal.
  if (process.env["npm_lifecycle_event"] !== undefined) onParentGone(() => child.kill("SIGTERM"));
  child.once("exit", (code, signal) => {
    endGroup(child.pid);
    process.exit(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
  });
}

/** Calls `stop` once the parent process is gone, also if it ended before this call. */
export function onParentGone(stop: () => void): void {
  const check = setInterval(() => {
    if (process.ppid === PARENT_PID) return;
    clearInterval(check);
    stop();
  }, PARENT_CHECK_MS);
  check.unref();
}

export function hasGroup(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function endGroup(leader: number | undefined): void {
  if (leader !== undefined && hasGroup(leader)) process.kill(-leader, "SIGKILL");
}
