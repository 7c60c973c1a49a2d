import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { bundleWorker } from "../bundle.ts";
import { freePort } from "../ports.ts";
import { HOST } from "../region.ts";
import { workerdPid } from "../workerd.ts";
import type { Stoppable, Target } from "./target.ts";

/** A program of this folder in a process of its own that listens on a loopback port; `stop` ends it. */
export async function startProgram(
  file: string,
  words: readonly string[] = [],
): Promise<Stoppable & { url: string }> {
  const child = fork(path.join(import.meta.dirname, file), words);
  const [port] = (await Promise.race([once(child, "message"), ended()])) as [number];
  return { url: `http://${HOST}:${port}`, stop: () => child.connected && child.disconnect() };

  async function ended(): Promise<never> {
    const [code] = await once(child, "exit");
    throw new Error(`${file} ended with ${code} before it listened`);
  }
}

/** The upstream mock as a target, without anything between. */
export async function startUpstream(): Promise<Target & Stoppable & { base: string }> {
  const { url, stop } = await startProgram("upstream.ts");
  const target = { name: "direct", url: completionsOf(`${url}/`), keys: [], pids: [] } as const;
  return { ...target, base: url, stop };
}

/** A bare Worker before the upstream, on a workerd of its own: the floor, or the pump. */
export async function startBareWorker(
  name: "floor" | "pump",
  upstream: string,
): Promise<Target & Stoppable> {
  const port = await freePort();
  const { workerOptions } = unstable_getMiniflareWorkerOptions(
    path.join(import.meta.dirname, "../../wrangler.toml"),
    "eu",
  );
  const code = await bundleWorker(true, path.join(import.meta.dirname, `../workers/${name}.ts`));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: HOST,
      port,
      cf: false,
      workers: [
        {
          name,
          compatibilityDate: workerOptions["compatibilityDate"] as string,
          compatibilityFlags: workerOptions["compatibilityFlags"] as string[],
          bindings: { UPSTREAM: upstream },
          unsafeDirectSockets: [{ host: HOST, port: 0 }],
          modules: [{ type: "ESModule", path: "index.js", contents: code }],
        },
      ],
    }),
  );
  await miniflare.ready;
  const url = completionsOf(String(await miniflare.unsafeGetDirectURL(name)));
  return { name, url, keys: [], pids: [workerdPid(port)], stop: () => miniflare.dispose() };
}

/** Where completions are asked for under a base URL that ends in a slash. */
export function completionsOf(base: string): string {
  return `${base}v1/chat/completions`;
}
