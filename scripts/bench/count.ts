import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Counts } from "../workers/counts.ts";
import { openOrganization, startHome, targetOf } from "./gateway.ts";
import type { GatewayOptions, Stage } from "./gateway.ts";
import { attempt, prepare, run } from "./load.ts";
import type { Target } from "./load.ts";

const COUNTED = 200;
const FORGED = 20;
const PUBLISH_WITHIN_MS = 9000; // the wallet publishes 5 s after the first change
const POLL_MS = 200;
const ASK = { kind: "json", words: 256 } as const;

export type Counted = {
  readonly completions: number;
  /** Sums over the counted JSON completions and the next publish. */
  readonly counts: Counts;
  /** Object calls and D1 queries that forged keys caused. Must be 0. */
  readonly forged: number;
};

/** Runs `work` with a counting gateway in its home region, and an organization with keys. */
export async function whileCounting<T>(
  stage: Stage,
  { keys, ...options }: GatewayOptions & { readonly keys: number },
  work: (target: Target, read: () => Promise<Counts>) => Promise<T>,
): Promise<T> {
  const home = await startHome(stage, { ...options, entry: "scripts/workers/counting.ts" });
  try {
    const target = targetOf("home", [home], await openOrganization(home.admin, "regional", keys));
    const read = async () => (await (await fetch(`${home.url}__counts`)).json()) as Counts;
    return await work(target, read);
  } finally {
    await home.stop();
  }
}

/** Counts the work of sequential completions until the wallet has published. */
export function countCompletions(stage: Stage, options: GatewayOptions): Promise<Counted> {
  return whileCounting(stage, { ...options, keys: 1 }, async (target, read) => {
    const load = { ...ASK, target, concurrency: 1 };
    await run({ ...load, requests: 3 }); // the first request loads the key from D1
    await sleep(POLL_MS);
    await read();
    for (let i = 0; i < FORGED; i++) {
      const keys = [`svc_sk_eu_live_${randomBytes(20).toString("hex")}`];
      const { status } = await attempt({ ...target, keys }, prepare(target, ASK));
      if (status !== 401) throw new Error(`a forged key was answered with ${status}, not 401`);
    }
    const { objectCalls, d1Queries } = await read();
    await run({ ...load, requests: COUNTED });
    const counts = await untilPublished(read);
    return { completions: COUNTED, counts, forged: objectCalls + d1Queries };
  });
}

async function untilPublished(read: () => Promise<Counts>): Promise<Counts> {
  const sum = await read();
  const deadline = performance.now() + PUBLISH_WITHIN_MS;
  while ((sum.alarms === 0 || sum.d1RowsWritten === 0) && performance.now() < deadline) {
    await sleep(POLL_MS);
    const more = await read();
    for (const name of Object.keys(more) as (keyof Counts)[]) sum[name] += more[name];
  }
  return sum;
}
