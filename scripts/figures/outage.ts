import { setTimeout as sleep } from "node:timers/promises";
import { getOrganization } from "../admin-client.ts";
import type { Made } from "../admin-client.ts";
import { ask } from "./ask.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { until, untilDelivered } from "./waiting.ts";
import { inTurns, makeAccount, startPlaces } from "./world.ts";
import type { Place, Places } from "./world.ts";

const OUTAGE_MS = 5000;
const FLIGHTS = 12;
const POLL_MS = 20;
/** Holds of requests that died live so long: short ones here, 20 and 35 minutes where nothing is set. */
const HOLDS_S = { REQUEST_DEADLINE_S: 9, HOLD_TTL_S: 10, PEER_HOLD_TTL_S: 14 } as const;
const SLOW = {
  model: "sandbox/slow-stream",
  messages: [{ role: "user", content: "word ".repeat(24) }],
  stream: true,
};
const SHORT = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] };

/** Times in ms: the first three since home answered again, the hold's since its request was sent. */
export type Recovery = {
  readonly homeServes: number;
  readonly peerServes: number;
  readonly everythingSettled: number;
  readonly oldestHold: number;
  /** Streams under way at the peer when home went down, and how many of them came to their end. */
  readonly flights: number;
  readonly whole: number;
};

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** Row 13. */
export function recoveryFinding(seen: Recovery): Finding {
  const { homeServes, peerServes, everythingSettled, oldestHold, flights, whole } = seen;
  return {
    row: 13,
    measured:
      `home down for ${OUTAGE_MS / 1000} s: started again it serves after ${Math.round(homeServes)} ms, the peer after ${Math.round(peerServes)} ms, ` +
      `all is settled after ${seconds(everythingSettled)} s; ${whole} of ${flights} streams at the peer came whole; ` +
      `oldest hold ${seconds(oldestHold)} s (of a request that died, time to live ${HOLDS_S.HOLD_TTL_S} s)`,
    isMet: null,
    values: { ...seen, outage: OUTAGE_MS, holdTimeToLive: HOLDS_S.HOLD_TTL_S * 1000 },
  };
}

export const OUTAGE: Producer = {
  rows: [13],
  what: "home goes down and comes back",
  seconds: 35,
  produce: async ({ scratch, say }) => {
    const bindings = Object.fromEntries(
      Object.entries(HOLDS_S).map(([name, value]) => [name, String(value)]),
    );
    const places = await startPlaces({ directory: scratch, bindings });
    try {
      const near = await makeAccount(places.eu, { credits: 1_000_000 });
      const far = await makeAccount(places.eu, { credits: 1_000_000, scope: "global" });
      await inTurns(2, 1, () => ask(places.us, far.key, "/chat/completions", SHORT)); // known there
      return [recoveryFinding(await outage(places, { near, far }, say))];
    } finally {
      await places.stop();
    }
  },
};

async function outage(
  places: Places,
  { near, far }: { readonly near: Made; readonly far: Made },
  say: (what: string) => void,
): Promise<Recovery> {
  const sentAt = performance.now();
  const dying = inTurns(FLIGHTS, FLIGHTS, () => isWhole(places.eu, near.key));
  const flying = inTurns(FLIGHTS, FLIGHTS, () => isWhole(places.us, far.key));
  await until("every stream has its hold", async () => {
    const open = await Promise.all([near, far].map(({ orgId }) => openHolds(places.eu, orgId)));
    return open.every((count) => count === FLIGHTS);
  });
  say("home is down");
  const start = await places.stopEu();
  await sleep(OUTAGE_MS);
  const backAt = performance.now(); // its process is started, which takes most of what follows
  const eu = await start();
  say("home is back");
  const since = async (wait: Promise<void>): Promise<number> => {
    await wait;
    return performance.now() - backAt;
  };
  const [homeServes, peerServes] = await Promise.all([
    since(serves(eu, near.key)),
    since(serves(places.us, far.key)),
  ]);
  const whole = (await flying).filter(Boolean).length;
  await dying;
  await untilDelivered(places.us);
  await until("no hold of the peer's", async () => (await openHolds(eu, far.orgId)) === 0);
  const everythingSettled = performance.now() - backAt;
  await until("no hold at home", async () => (await openHolds(eu, near.orgId)) === 0);
  const oldestHold = performance.now() - sentAt;
  return { homeServes, peerServes, everythingSettled, oldestHold, flights: FLIGHTS, whole };
}

async function openHolds({ admin }: Place, orgId: string): Promise<number | null> {
  return (await getOrganization(admin, orgId)).open_holds;
}

/** A slow stream: whether it was answered to its end. */
async function isWhole(place: Place, key: string): Promise<boolean> {
  const answer = await ask(place, key, "/chat/completions", SLOW).catch(() => null);
  return answer?.text.endsWith("data: [DONE]\n\n") ?? false;
}

async function serves(place: Place, key: string): Promise<void> {
  await until(`${place.name} serves`, async () => {
    const answer = await ask(place, key, "/chat/completions", SHORT).catch(() => null);
    if (answer?.status !== 200) await sleep(POLL_MS);
    return answer?.status === 200;
  });
}
