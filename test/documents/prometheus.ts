import { spawnSync } from "node:child_process";

/** Reports whether a program of Debian's package `prometheus` is installed. */
export function isInstalled(program: "prometheus" | "promtool"): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** The line that a skipped test shows. */
export const NOT_INSTALLED = "not run: Debian's package prometheus is not installed";
