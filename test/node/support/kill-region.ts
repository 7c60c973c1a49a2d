import { setTimeout as sleep } from "node:timers/promises";
import type { Region } from "../../../scripts/region.ts";
import { workerdPid } from "../../../scripts/workerd.ts";

const BACK_WITHIN_MS = 60_000;
const POLL_MS = 20;

/**
 * Kills a region's workerd with SIGKILL and waits until the region responds again. miniflare starts
 * another on the same port and state in about 200 ms. Earlier handles of `miniflare.get*` stop
 * working. To kill at a precise moment, look up the PID first, which takes milliseconds.
 */
export async function killRegion(
  region: Pick<Region, "port" | "url">,
  pid: number = workerdPid(region.port),
): Promise<void> {
  process.kill(pid, "SIGKILL");
  const deadline = performance.now() + BACK_WITHIN_MS;
  while (!(await isBack(region, pid))) {
    if (performance.now() > deadline) throw new Error(`port ${region.port} stayed down`);
    await sleep(POLL_MS);
  }
}

async function isBack(region: Pick<Region, "port" | "url">, killed: number): Promise<boolean> {
  try {
    if (workerdPid(region.port) === killed) return false;
    const response = await fetch(`${region.url}healthz`);
    await response.body?.cancel();
    return true;
  } catch {
    return false; // not listening yet
  }
}
