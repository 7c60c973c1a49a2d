import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

const NANOSECONDS_PER_MICROSECOND = 1000;
const MICROSECONDS_PER_TICK = 10_000; // USER_HZ is 100 on every Linux

/**
 * Returns the PID of the child workerd that serves miniflare on `port`. Throws if there is none.
 */
export function workerdPid(port: number): number {
  const argument = `--socket-addr=entry=127.0.0.1:${port}`;
  const found = childProcesses().find((child) => child.command.split(/[\0 ]/).includes(argument));
  if (found === undefined) throw new Error(`no workerd of this process serves port ${port}`);
  return found.pid;
}

/**
 * Returns the user and system CPU time of processes in microseconds. On Linux, it comes from the
 * threads' schedstat, or from utime + stime in /proc/<pid>/stat (10 ms ticks). Elsewhere, it comes
 * from `ps` (hundredths of a second on macOS).
 */
export function cpuMicroseconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (fromSchedstat(pid) ?? fromStat(pid) ?? fromPs(pid)), 0);
}

export function coresWorkedMs(): number {
  return cpus().reduce(
    (sum, { times }) => sum + times.user + times.nice + times.sys + times.irq,
    0,
  );
}

export function cpuSource(): string {
  if (fromSchedstat(process.pid) !== null) return "/proc/<pid>/task/*/schedstat";
  return fromStat(process.pid) === null ? "ps -o time" : "/proc/<pid>/stat";
}

function fromSchedstat(pid: number): number | null {
  const threads = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  const times = threads.map((thread) =>
    attempt(() => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8")),
  );
  const known = times.filter((time) => time !== null && Number(time.split(" ")[0]) > 0);
  if (known.length === 0) return null;
  const nanoseconds = known.reduce((sum, time) => sum + Number(time?.split(" ")[0]), 0);
  return nanoseconds / NANOSECONDS_PER_MICROSECOND;
}

function fromStat(pid: number): number | null {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (stat === null) return null;
  // Fields 14 and 15 of proc(5). The name before them can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_PER_TICK;
}

function fromPs(pid: number): number {
  const { stdout } = spawnSync("ps", ["-o", "time=", "-p", String(pid)], { encoding: "utf8" });
  const parts = stdout.trim().split(/[-:]/).map(Number); // [days-][hours:]minutes:seconds[.cc]
  const weights = [1, 60, 3600, 86_400];
  const seconds = parts.toReversed().reduce((sum, part, i) => sum + part * (weights[i] ?? 0), 0);
  return seconds * 1e6;
}

/** Returns the running child processes of a process, by default of this one. */
export function childPids(parent = process.pid): number[] {
  return childProcesses(parent).map(({ pid }) => pid);
}

function childProcesses(of = process.pid): { pid: number; command: string }[] {
  const pids = attempt(() => readdirSync("/proc"))?.filter((name) => /^\d+$/.test(name));
  if (pids === undefined) return childProcessesByPs(of);
  return pids.flatMap((pid) => {
    const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8")) ?? "";
    const parent = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
    if (Number(parent) !== of) return [];
    return [
      {
        pid: Number(pid),
        command: attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? "",
      },
    ];
  });
}

function childProcessesByPs(of: number): { pid: number; command: string }[] {
  const { stdout } = spawnSync("ps", ["-axo", "pid=,ppid=,args="], { encoding: "utf8" });
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, command = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(parent) === of ? [{ pid: Number(pid), command }] : [];
  });
}

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null; // the process is gone, or this isn't Linux
  }
}
