import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { TestRegion } from "./two-regions.ts";

type HeapUsage = {
  readonly usedSize: number;
  /** Objects of workerd that JavaScript refers to. */
  readonly embedderHeapUsedSize: number;
  /** Bytes of buffers, which are outside of V8's heap. */
  readonly backingStorageSize: number;
};
type Reply = { readonly id: number; readonly result?: unknown; readonly error?: unknown };

/** Measures the memory of a region's isolate through V8's inspector. */
export class IsolateMemory {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, result, error } = JSON.parse(String(data)) as Reply;
      const waiting = this.#waiting.get(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(JSON.stringify(error)));
    });
  }

  /** Connects to a region that was started with `hasInspector`. */
  static async of({ miniflare, name }: TestRegion): Promise<IsolateMemory> {
    const { host } = await miniflare.getInspectorURL();
    const socket = new WebSocket(`ws://${host}/core:user:turnpike-${name}`);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", reject);
    });
    return new IsolateMemory(socket);
  }

  /** Returns the bytes in use after a garbage collection, including buffers outside of the heap. */
  async liveBytes(): Promise<number> {
    await this.#call("HeapProfiler.collectGarbage");
    const usage = (await this.#call("Runtime.getHeapUsage")) as HeapUsage;
    return usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
  }

  close(): void {
    this.#socket.close();
  }

  #call(method: string): Promise<unknown> {
    const waiting = Promise.withResolvers<unknown>();
    const id = ++this.#calls;
    this.#waiting.set(id, waiting);
    this.#socket.send(JSON.stringify({ id, method }));
    return waiting.promise;
  }
}

/** Returns a process's memory in bytes. Throws if the process is gone. */
export function residentBytes(pid: number): number {
  const kibibytes = existsSync("/proc")
    ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
    : spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }).stdout;
  const bytes = Number(kibibytes) * 1024;
  if (!(bytes > 0)) throw new Error(`process ${pid} has no memory`);
  return bytes;
}
