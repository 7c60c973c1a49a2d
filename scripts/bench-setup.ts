import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { addCredits, createKey, createOrganization } from "./admin-client.ts";
import type { Target } from "./bench-load.ts";
import { bundleWorker } from "./bundle.ts";
import { freePort } from "./ports.ts";
import { HOST, startRegion } from "./region.ts";
import type { LogLine } from "./region.ts";
import { workerdPid } from "./workerd.ts";

const ADMIN_TOKEN = "bench-admin-token".padEnd(40, "b");
const CREDITS_MICRO = 1_000_000_000_000;
const RPM_LIMIT = 1000;

/** A Worker under load: where, the process that runs it, and how to stop it. */
export type Bench = Target & { readonly pid: number; readonly stop: () => Promise<void> };

/** The mock upstream in its own process; `stop` ends it. */
export async function startUpstream(): Promise<{ url: string; stop: () => void }> {
  const child = fork(path.join(import.meta.dirname, "bench-upstream.ts"));
  const [port] = (await once(child, "message")) as [number];
  return { url: `http://${HOST}:${port}`, stop: () => child.disconnect() };
}

/** The floor: a bare pass-through Worker before the upstream, on a workerd of its own. */
export async function startFloor(upstream: string): Promise<Bench> {
  const port = await freePort();
  const { workerOptions } = unstable_getMiniflareWorkerOptions(
    path.join(import.meta.dirname, "../wrangler.toml"),
    "eu",
  );
  const code = await bundleWorker(true, path.join(import.meta.dirname, "workers/floor.ts"));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: HOST,
      port,
      cf: false,
      workers: [
        {
          name: "floor",
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
  const url = String(await miniflare.unsafeGetDirectURL("floor"));
  return {
    name: "floor",
    url: `${url}v1/chat/completions`,
    keys: ["none"],
    pid: workerdPid(port),
    stop: () => miniflare.dispose(),
  };
}

export type TurnpikeOptions = {
  readonly upstream: string;
  readonly directory: string;
  readonly keys: number;
  /** Another entry than the gateway's own, around it. */
  readonly entry?: string;
};

/** The gateway itself before the upstream: one region, one organisation, many keys. */
export async function startTurnpike(options: TurnpikeOptions): Promise<Bench> {
  const port = await freePort();
  const problems: string[] = [];
  const region = await startRegion({
    region: "eu",
    port,
    peers: [],
    directory: options.directory,
    code: await bundleWorker(true, options.entry),
    direct: true,
    bindings: {
      KEY_SECRETS: `a:${"b".repeat(32)}`,
      ADMIN_TOKEN,
      PROVIDERS: JSON.stringify([
        { id: "bench", base_url: `${options.upstream}/v1`, regions: ["eu"] },
      ]),
      MODELS: JSON.stringify([
        {
          id: "bench/model",
          kind: "chat",
          context: 128_000,
          max_output: 4096,
          price: { input: 150_000, output: 600_000 },
          routes: [{ provider: "bench", upstream_id: "bench" }],
        },
      ]),
    },
    onLog: ({ level, message }: LogLine) => {
      if (level === "error") problems.push(message);
    },
  });
  try {
    const keys = await makeKeys(`${region.directUrl}admin/v1`, options.keys);
    return {
      name: "turnpike",
      url: `${region.directUrl}v1/chat/completions`,
      keys,
      pid: workerdPid(port),
      stop: () => region.miniflare.dispose(),
    };
  } catch (error) {
    await region.miniflare.dispose();
    throw new Error(["the gateway could not be set up", ...problems.slice(0, 5)].join("\n"), {
      cause: error,
    });
  }
}

async function makeKeys(adminUrl: string, count: number): Promise<string[]> {
  const admin = { url: adminUrl, token: ADMIN_TOKEN };
  const { orgId, memberId } = await createOrganization(admin, {
    name: "Bench",
    slug: "bench",
    ownerEmail: "owner@bench.example",
    keyScope: "regional",
  });
  await addCredits(admin, { orgId, amountMicro: CREDITS_MICRO, reference: "bench" });
  const names = Array.from({ length: count }, (_, i) => `bench ${i}`);
  const made = { orgId, memberId, scope: "regional", rpmLimit: RPM_LIMIT } as const;
  return Promise.all(names.map((name) => createKey(admin, { ...made, name })));
}
