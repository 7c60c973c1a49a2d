import { setTimeout as sleep } from "node:timers/promises";
import { RateWindow } from "../../src/lib/rate-window.ts";
import { ask } from "./ask.ts";
import * as registers from "./registers.ts";
import type { Register } from "./registers.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { inTurns, makeAccount, startPlace } from "./world.ts";
import type { Place } from "./world.ts";

const LIMIT = 60;
const LIMITS = [LIMIT, 1000];
const EVICTIONS = 4;
/** Longer than a minute: what a burst has used comes free, and is used by the flood at once. */
const FLOOD_MS = 66_000;
const PER_SECOND = 10;
const ALGORITHMS: Readonly<Record<string, (limit: number) => Register>> = {
  ours: registers.exactLog,
  "fixed window": registers.fixedWindow,
  "sliding counter": registers.slidingCounter,
  "token bucket": registers.tokenBucket,
};

/** The worst of an algorithm, over its limit, in all patterns and for both limits. */
export function worstRatio(make: (limit: number) => Register): number {
  const ratios = LIMITS.flatMap((limit) =>
    Object.values(registers.PATTERNS).map(
      (times) => registers.worstMinute(make(limit), times(limit)) / limit,
    ),
  );
  return Math.max(...ratios);
}

/** Row 5: the rules on the same patterns, and a key that is really pressed for more than a minute. */
export function minuteFinding(
  ratios: Readonly<Record<string, number>>,
  real: { readonly most: number; readonly admitted: number; readonly asked: number },
): Finding {
  const { ours = NaN, ...others } = ratios;
  const rest = Object.entries(others).map(([name, ratio]) => `${name} ${ratio.toFixed(2)}`);
  const pressedRatio = real.most / LIMIT;
  return {
    row: 5,
    measured:
      `${ours.toFixed(2)}; ${rest.join(", ")} (${Object.keys(registers.PATTERNS).length} patterns, limits ${LIMITS.join(" and ")}); ` +
      `a real key pressed for ${FLOOD_MS / 1000} s: ${pressedRatio.toFixed(2)}, ${real.admitted} of ${real.asked}`,
    // it must also be admitted again once its first burst is a minute old
    isMet: ours === 1 && real.most === LIMIT && real.admitted > LIMIT,
    values: { ...ratios, real: pressedRatio, admitted: real.admitted, asked: real.asked },
  };
}

/** Row 6: admissions of a key whose wallet, which admits it, is evicted after each flood. */
export function evictionFinding(admitted: number, inMemory: number): Finding {
  return {
    row: 6,
    measured: `${admitted} of ${(EVICTIONS + 1) * LIMIT} requests, ${EVICTIONS} evictions; a register in memory alone ${inMemory}`,
    isMet: admitted === LIMIT,
    values: { admitted, inMemory, evictions: EVICTIONS },
  };
}

export const LIMIT_OF_A_MINUTE: Producer = {
  rows: [5],
  what: "limits of a minute",
  seconds: 75,
  produce: async ({ scratch, say }) => {
    const ratios = Object.fromEntries(
      Object.entries(ALGORITHMS).map(([name, make]) => [name, worstRatio(make)]),
    );
    const place = await startPlace({ directory: scratch });
    try {
      say(`a key is pressed for ${FLOOD_MS / 1000} s`);
      return [minuteFinding(ratios, await pressed(place))];
    } finally {
      await place.miniflare.dispose();
    }
  },
};

export const EVICTION_ATTACK: Producer = {
  rows: [6],
  what: "a wallet that is evicted",
  seconds: 6,
  produce: async ({ scratch }) => {
    const place = await startPlace({ directory: scratch });
    try {
      const { key } = await makeAccount(place, { credits: 0, rpmLimit: LIMIT });
      let admitted = await flood(place, key);
      for (let i = 0; i < EVICTIONS; i++) {
        await evictWallets(place);
        admitted += await flood(place, key);
      }
      return [evictionFinding(admitted, admittedInMemory())];
    } finally {
      await place.miniflare.dispose();
    }
  },
};

/** A burst of the whole limit, then a steady flood until its first admissions are a minute old. */
async function pressed(place: Place) {
  const { key } = await makeAccount(place, { credits: 0, rpmLimit: LIMIT });
  const admissions: { from: number; to: number }[] = [];
  let asked = 0;
  const one = async (): Promise<void> => {
    asked++;
    const from = performance.now();
    const { status } = await ask(place, key, "/models");
    if (status === 200) admissions.push({ from, to: performance.now() });
    else if (status !== 429) throw new Error(`a pressed key was answered with ${status}`);
  };
  const began = performance.now();
  const calls = Array.from({ length: LIMIT }, one);
  while (performance.now() - began < FLOOD_MS) {
    await sleep(1000 / PER_SECOND);
    calls.push(one());
  }
  await Promise.all(calls);
  return { most: registers.mostWithin(admissions), admitted: admissions.length, asked };
}

async function flood(place: Place, key: string): Promise<number> {
  const answers = await inTurns(LIMIT, LIMIT, () => ask(place, key, "/models"));
  return answers.filter(({ status }) => status === 200).length;
}

async function evictWallets({ miniflare, worker }: Place): Promise<void> {
  for (const id of await miniflare.listDurableObjectIds("Wallet", worker)) {
    await miniflare.unsafeEvictDurableObject(worker, "Wallet", { id });
  }
}

/** The same attack on the same rule where nothing is stored. */
function admittedInMemory(): number {
  let admitted = 0;
  for (let life = 0; life <= EVICTIONS; life++) {
    const window = new RateWindow();
    for (let i = 0; i < LIMIT; i++) {
      const decision = window.decide(LIMIT, life);
      if (!decision.admitted) continue;
      window.append(decision.entry);
      admitted++;
    }
  }
  return admitted;
}
