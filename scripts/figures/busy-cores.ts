import { setTimeout as sleep } from "node:timers/promises";
import { coresWorkedMs } from "../workerd.ts";

const SAMPLE_MS = 500;
/** Below it, what the system itself does. */
const NOTED_FROM = 0.2;

/** How many cores are busy: those of other programs, when it is asked while nothing of ours runs. */
export async function busyCores(): Promise<number> {
  const [atMs, worked] = [performance.now(), coresWorkedMs()];
  await sleep(SAMPLE_MS);
  return (coresWorkedMs() - worked) / (performance.now() - atMs);
}

/** A timed figure's text, with the cores that other programs kept busy, if that is worth a word. */
export function withBusyCores(text: string, cores: number): string {
  if (cores < NOTED_FROM) return text;
  return `${text} (other programs kept ${cores.toFixed(1)} cores busy)`;
}
