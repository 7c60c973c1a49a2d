import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Counts } from "../workers/counts.ts";
import { openOrganization, startHome, targetOf } from "./gateway.ts";
import type { GatewayOptions, Stage } from "./gateway.ts";
import { run, statusWithKey } from "./load.ts";

const COUNTED = 200;
const FORGED = 20;
const PUBLISH_WITHIN_MS = 9000; // the wallet publishes 5 s after the first change
const POLL_MS = 200;

export type Counted = {
  readonly completions: number;
  /** Sums over the counted JSON completions and the one publish that followed. */
  readonly counts: Counts;
  /** Object calls and D1 queries that forged keys caused; none is what is promised. */
  readonly forged: number;
};

/** Runs the gateway with counters around it, one request after the other, until the wallet has published. */
export async function countCompletions(stage: Stage, options: GatewayOptions): Promise<Counted> {
  const home = await startHome(stage, { ...options, entry: "scripts/workers/counting.ts" });
  try {
    const target = targetOf("home", [home], await openOrganization(home.admin, "regional", 1));
    const read = async () => (await (await fetch(`${home.url}__counts`)).json()) as Counts;
    const load = { target, kind: "json", concurrency: 1, words: 256 } as const;
    await run({ ...load, requests: 3 }); // the key's record is read from D1 once
    await sleep(POLL_MS);
    await read();
    for (let i = 0; i < FORGED; i++) {
      const forged = `svc_sk_eu_live_${randomBytes(20).toString("hex")}`;
      const status = await statusWithKey(target.url, forged);
      if (status !== 401) throw new Error(`a forged key was answered with ${status}, not 401`);
    }
    const { objectCalls, d1Queries } = await read();
    await run({ ...load, requests: COUNTED });
    return {
      completions: COUNTED,
      counts: await untilPublished(read),
      forged: objectCalls + d1Queries,
    };
  } finally {
    await home.stop();
  }
}

async function untilPublished(read: () => Promise<Counts>): Promise<Counts> {
  let sum = await read();
  const deadline = performance.now() + PUBLISH_WITHIN_MS;
  while ((sum.alarms === 0 || sum.d1RowsWritten === 0) && performance.now() < deadline) {
    await sleep(POLL_MS);
    sum = added(sum, await read());
  }
  return sum;
}

function added(a: Counts, b: Counts): Counts {
  const names = Object.keys(a) as (keyof Counts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Counts;
}
