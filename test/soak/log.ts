import { clockMs } from "../../scripts/exchange.ts";
import type { LogLine } from "../../scripts/region.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { mishapIn } from "./judge-answers.ts";
import type { HeapSample, Mishap } from "./trace.ts";

const MIB = 1024 * 1024;
/**
 * V8's line about a collection: process, the isolate's age in ms, heap after it, reason. Only the gateway's
 * isolate collects on demand.
 */
const COLLECTION = /\[(\d+):0x\w+\] +(\d+) ms: Mark-Compact.* -> ([\d.]+) \([\d.]+\) MB(.*)/g;
const REMARKABLE_MAX = 20;

/** The Workers' log, counted by event. */
export class Log {
  /** The number of lines by event. */
  readonly events = new Map<string, number>();
  /** The first lines that are alerts or no event at all. */
  readonly remarkable: string[] = [];
  /** Lines that should not have been logged. */
  readonly mishaps: Mishap[] = [];
  /** The gateway's heap after each requested collection. */
  readonly heaps: HeapSample[] = [];

  take(region: PairName, { level, message }: LogLine): void {
    const collections = [...message.matchAll(COLLECTION)]; // under load, V8 logs several lines at once
    for (const [, pid, age, mebibytes, rest = ""] of collections) {
      const [atMs, bytes] = [Number(age), Number(mebibytes) * MIB]; // lines come late: V8 buffers them
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
