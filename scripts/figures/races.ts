import type { Made } from "../admin-client.ts";
import { getLedger } from "../admin-client.ts";
import { ask, usageOf } from "./ask.ts";
import type { Answer } from "./ask.ts";
import type { Bench, Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { inTurns, makeAccount, startPlace } from "./world.ts";
import type { Place } from "./world.ts";

const RACES = 60;
const RUNNERS = 16;
/** What the sandbox's model costs, in micros per token. */
const PRICE = { input: 1, output: 2 } as const;
/** Its answer is as long as its cap, so that what is charged is near to what is held. */
const BODY = {
  model: "sandbox/echo",
  messages: [{ role: "user", content: "the last of it ".repeat(16) }],
  max_tokens: 40,
};
const STREAM = { ...BODY, stream: true, stream_options: { include_usage: true } };

/** One race: what was there, what was used by the answers' own usage, the lowest balance ever. */
type Race = {
  readonly credits: number;
  readonly used: number;
  readonly served: number;
  readonly lowest: number;
};

/** Row 2: by how much more was used than was paid for, over all races. */
export function raceFinding(races: readonly Race[]): Finding {
  const sum = (of: (one: Race) => number): number =>
    races.reduce((total, one) => total + of(one), 0);
  const values = {
    races: races.length,
    requests: races.length * RUNNERS,
    served: sum((one) => one.served),
    overspend: sum(({ credits, used }) => Math.max(0, used - credits)),
    belowZero: sum(({ lowest }) => Math.max(0, 0 - lowest)),
  };
  const { served, requests, overspend, belowZero } = values;
  return {
    row: 2,
    measured: `${overspend} micros in ${races.length} races of ${RUNNERS} at once; ${served} of ${requests} served, balance below zero by ${belowZero}`,
    isMet: overspend === 0 && belowZero === 0 && served > 0 && served < requests,
    values,
  };
}

export const RACES_OF_LAST_CREDITS: Producer = {
  rows: [2],
  what: "races for the last credits",
  seconds: 15,
  produce: async ({ scratch, say }: Bench) => {
    const place = await startPlace({ directory: scratch });
    try {
      const least = await leastOf(place);
      const races: Race[] = [];
      for (let n = 0; n < RACES; n++) {
        if (n % 20 === 0) say(`race ${n} of ${RACES}`);
        races.push(await race(place, (1 + (n % 5)) * least + (n % 7)));
      }
      return [raceFinding(races)];
    } finally {
      await place.miniflare.dispose();
    }
  },
};

async function race(place: Place, credits: number): Promise<Race> {
  const account = await makeAccount(place, { credits });
  const answers = await inTurns(RUNNERS, RUNNERS, (n) =>
    ask(place, account.key, "/chat/completions", n % 2 === 0 ? BODY : STREAM),
  );
  const served = answers.filter(({ status }) => status === 200);
  const wrong = answers.find(({ status }) => status !== 200 && status !== 402);
  if (wrong !== undefined) throw new Error(`a race was answered ${wrong.status}: ${wrong.text}`);
  const used = served.reduce((sum, answer) => sum + costOf(answer), 0);
  return { credits, used, served: served.length, lowest: await lowestBalance(place, account) };
}

function costOf(answer: Answer): number {
  const usage = usageOf(answer);
  if (usage === null) throw new Error(`an answer without usage: ${answer.text.slice(-300)}`);
  return usage.input * PRICE.input + usage.output * PRICE.output;
}

/** What such a request needs, as its refusal names it. */
async function leastOf(place: Place): Promise<number> {
  const { key } = await makeAccount(place, { credits: 0 });
  const { text } = await ask(place, key, "/chat/completions", BODY);
  const { error } = JSON.parse(text) as { error: { required_micro: number } };
  return error.required_micro;
}

async function lowestBalance({ admin }: Place, { orgId }: Made): Promise<number> {
  const { rows } = await getLedger(admin, orgId, { after_seq: 0, limit: 1000 });
  return Math.min(...rows.map((row) => row.balance_micro));
}
