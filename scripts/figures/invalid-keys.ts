import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import path from "node:path";
import type { Counts } from "../workers/counts.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { inTurns, makeAccount, startPlace } from "./world.ts";
import type { Place } from "./world.ts";

const COUNTED = 600;
const CALLERS = 16;
const FLOOD_MS = 4000;
const WARM_UP = 2000;

/** Row 9: what refusals of invalid keys cost storage, and how many there are in a second. */
export function invalidKeyFinding(seen: {
  readonly counted: number;
  readonly operations: number;
  readonly perSecond: number;
}): Finding {
  const { counted, operations, perSecond } = seen;
  return {
    row: 9,
    measured: `${operations} for ${counted} keys; ${Math.round(perSecond).toLocaleString("en-US")}/s over HTTP, ${CALLERS} at a time`,
    isMet: operations === 0 && counted > 0,
    values: { operations, counted, perSecond },
  };
}

export const INVALID_KEYS: Producer = {
  rows: [9],
  what: "a flood of invalid keys",
  seconds: 15,
  produce: async ({ scratch, say }) => {
    say("counting what they cause");
    const operations = await operationsOf(path.join(scratch, "counting"));
    say("counting them");
    const perSecond = await rateOf(path.join(scratch, "flood"));
    return [invalidKeyFinding({ counted: COUNTED, operations, perSecond })];
  },
};

/** Object calls and D1 queries that invalid keys cause in a gateway with counters around it. */
async function operationsOf(directory: string): Promise<number> {
  const entry = path.join(import.meta.dirname, "../workers/counting.ts");
  const place = await startPlace({ directory, entry, direct: true });
  const agent = new Agent({ keepAlive: true });
  const counts = async (): Promise<Counts> =>
    (await (await fetch(new URL("/__counts", place.directUrl))).json()) as Counts;
  try {
    const { key } = await makeAccount(place, { credits: 0 });
    await refused(place, agent, key.slice(0, -1)); // the isolate is warm
    await counts();
    await inTurns(COUNTED, CALLERS, (n) => refused(place, agent, invalidKey(n, key)));
    const { objectCalls, d1Queries, requests } = await counts();
    if (requests !== COUNTED) throw new Error(`${requests} of ${COUNTED} requests arrived`);
    return objectCalls + d1Queries;
  } finally {
    agent.destroy();
    await place.miniflare.dispose();
  }
}

async function rateOf(directory: string): Promise<number> {
  const place = await startPlace({ directory, direct: true });
  const agent = new Agent({ keepAlive: true, scheduling: "fifo" });
  try {
    const { key } = await makeAccount(place, { credits: 0 });
    await inTurns(WARM_UP, CALLERS, (n) => refused(place, agent, invalidKey(n, key)));
    const began = performance.now();
    let answered = 0;
    const caller = async (): Promise<void> => {
      while (performance.now() - began < FLOOD_MS) {
        await refused(place, agent, invalidKey(answered, key));
        answered++;
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    return answered / ((performance.now() - began) / 1000);
  } finally {
    agent.destroy();
    await place.miniflare.dispose();
  }
}

/** No key at all, one of another kind, a forged one of the right form, a real one changed by a character. */
function invalidKey(n: number, real: string): string {
  const changed = real.at(-1) === "A" ? "B" : "A";
  const kinds = [
    `sk-${randomBytes(24).toString("hex")}`,
    `svc_sk_eu_live_${randomBytes(20).toString("hex")}`,
    real.slice(0, -1) + changed,
    real.replace("svc_sk_eu_live_", "svc_sk_gbl_eu_live_"),
  ];
  return kinds[n % kinds.length] ?? "";
}

/** One completion that must be a 401. */
function refused(place: Place, agent: Agent, key: string): Promise<void> {
  const body = JSON.stringify({ model: "smart", messages: [{ role: "user", content: "hi" }] });
  return new Promise((resolve, reject) => {
    const outgoing = request(`${place.v1}/chat/completions`, {
      method: "POST",
      agent,
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      },
    });
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      response.resume();
      response.on("end", () => {
        if (response.statusCode === 401) resolve();
        else reject(new Error(`an invalid key was answered with ${response.statusCode}`));
      });
    });
    outgoing.end(body);
  });
}
