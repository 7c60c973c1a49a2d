import { clockMs } from "../../scripts/exchange.ts";
import type { LogLine } from "../../scripts/region.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { mishapIn } from "./judge-responses.ts";
import type { HeapSample, Mishap } from "./trace.ts";

const MIB = 1024 * 1024;
/**
 * V8's line for a collection: process, the isolate's age in ms, the heap after it, and the reason.
 * Only the gateway's isolate collects on request.
 */
const COLLECTION = /\[(\d+):0x\w+\] +(\d+) ms: Mark-Compact.* -> ([\d.]+) \([\d.]+\) MB(.*)/g;
const REMARKABLE_MAX = 20;

/** Counts the Workers' log lines by event. */
export class Log {
  /** Number of lines by event. */
  readonly events = new Map<string, number>();
  /** The first lines that are alerts or not events. */
  readonly remarkable: string[] = [];
  /** Lines that report a bug. */
  readonly mishaps: Mishap[] = [];
  /** The gateway's heap after each requested collection. */
  readonly heaps: HeapSample[] = [];

  take(region: PairName, { level, message }: LogLine): void {
    // under load, V8 logs several lines together
    const collections = [...message.matchAll(COLLECTION)];
    for (const [, pid, age, mebibytes, rest = ""] of collections) {
      // V8 buffers lines, so they arrive late
      const [atMs, bytes] = [Number(age), Number(mebibytes) * MIB];
      if (!rest.includes("requested")) continue;
      this.heaps.push({ region, pid: Number(pid), atMs, bytes });
    }
    if (collections.length > 0 || / ms: Scavenge /.test(message)) return;
    const event = eventIn(message);
    this.events.set(event, (this.events.get(event) ?? 0) + 1);
    const mishap = mishapIn(event, message);
    if (mishap !== null) this.mishaps.push({ event: mishap, region, atMs: clockMs(), message });
    const isRemarkable = level === "error" && !message.includes("NOSENTRY");
    if (!isRemarkable || this.remarkable.length >= REMARKABLE_MAX) return;
    this.remarkable.push(`${region}: ${message.slice(0, 400)}`);
  }
}

function eventIn(message: string): string {
  const [, event, alert] = /^\{"event":"(\w+)"(?:,"alert":"(\w+)")?/.exec(message) ?? [];
  if (event === undefined) return `(runtime) ${message.slice(0, 60).replaceAll(/[\d.]+/g, "#")}`;
  return alert === undefined ? event : `alert ${alert}`;
}
