import { quantile } from "../bench/estimate.ts";
import { ask, leave } from "./ask.ts";
import { startCountedUpstream } from "./counted-upstream.ts";
import type { CountedUpstream } from "./counted-upstream.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { failuresOf, IN_FULL, runTests, sumOf, withFailures } from "./vitest-report.ts";
import type { RanTest } from "./vitest-report.ts";
import { untilResolved } from "./waiting.ts";
import { inTurns, makeAccount, startPlace } from "./world.ts";
import type { Place } from "./world.ts";

const CLIENTS = 160;
const CALLERS = 16;
const PACE_MS = 8;
/** Bytes of one token's event, roughly. */
const EVENT_BYTES = 170;
const DRAIN_S = 1;

/** One client that left: output tokens as they were billed, and as the upstream had sent them. */
export type Left = {
  readonly billed: number;
  readonly sent: number;
  readonly isEstimated: boolean;
};

/** Row 8: resets at every byte of two answers, and how near the charge of one who left is to the truth. */
export function leavingFinding(
  tests: readonly RanTest[],
  left: readonly Left[],
  clients: number,
): Finding {
  const points = sumOf(tests, "points");
  const settled = sumOf(
    tests.filter((one) => one.hasPassed),
    "points",
  );
  const errors = (of: readonly Left[]): number[] =>
    of.map(({ billed, sent }) => (100 * (billed - sent)) / sent);
  const reported = errors(left.filter((one) => !one.isEstimated));
  const estimated = errors(left.filter((one) => one.isEstimated));
  const values = {
    points,
    settled,
    clients,
    charged: left.length,
    estimated: estimated.length,
    p50: quantile(estimated.map(Math.abs), 0.5),
    p95: quantile(estimated.map(Math.abs), 0.95),
    bias: quantile(estimated, 0.5),
    reportedWorst: Math.max(0, ...reported.map(Math.abs)),
  };
  const percent = points === 0 ? 0 : (100 * settled) / points;
  const text =
    `${percent.toFixed(percent === 100 ? 0 : 2)} % of ${points.toLocaleString("en-US")} byte offsets; ` +
    `${left.length} of ${clients} paced streams charged with DRAIN_S ${DRAIN_S}: ${reported.length} by usage, off by ${values.reportedWorst.toFixed(1)} %, ` +
    `${estimated.length} by estimate${estimated.length === 0 ? "" : estimateInWords(values)}`;
  const isMet =
    points > 0 && settled === points && failuresOf(tests) === 0 && left.length === clients;
  return { row: 8, measured: withFailures(text, tests), isMet, values };
}

export const CLIENTS_THAT_LEAVE: Producer = {
  rows: [8],
  what: "clients that leave",
  seconds: 35,
  produce: async ({ scratch, say }) => {
    say("resets at every byte");
    const tests = await runTests(scratch, ["test/node/disconnect.test.ts"], IN_FULL);
    say(`${CLIENTS} clients leave paced streams`);
    const upstream = await startCountedUpstream(PACE_MS);
    try {
      const bindings = { ...upstream.bindings, DRAIN_S: String(DRAIN_S) };
      const place = await startPlace({ directory: scratch, bindings });
      try {
        return [leavingFinding(tests, await everyoneLeaves(place, upstream), CLIENTS)];
      } finally {
        await place.miniflare.dispose();
      }
    } finally {
      upstream.stop();
    }
  },
};

async function everyoneLeaves(place: Place, upstream: CountedUpstream): Promise<readonly Left[]> {
  const account = await makeAccount(place, { credits: 1_000_000_000 });
  const flights = await inTurns(CLIENTS, CALLERS, async (n) => {
    const text = `Tell me story number ${n} of the town by the river.`;
    const body = {
      model: "counted/model",
      messages: [{ role: "user", content: text }],
      max_tokens: 40 + ((n * 37) % 460),
      stream: true,
    };
    const id = await leave(place, account.key, body, (1 + ((n * 13) % 60)) * EVENT_BYTES);
    return { id, text };
  });
  await untilResolved(place, account.orgId);
  const left = await inTurns(flights.length, CALLERS, async (n) => {
    const flight = flights[n];
    const sent = flight === undefined ? undefined : upstream.sent(flight.text);
    if (flight === undefined || sent === undefined || sent.tokens === 0) return null;
    const { status, text } = await ask(place, account.key, `/generations/${flight.id}`);
    if (status !== 200) return null;
    const { completion_tokens: billed, estimated } = JSON.parse(text) as {
      completion_tokens: number;
      estimated: boolean;
    };
    return { billed, sent: sent.tokens, isEstimated: estimated };
  });
  return left.filter((one) => one !== null);
}

function estimateInWords(of: {
  readonly p50: number;
  readonly p95: number;
  readonly bias: number;
}) {
  const side = of.bias > 0 ? "over" : "under";
  return `, off by p50 ${of.p50.toFixed(1)} %, p95 ${of.p95.toFixed(1)} % (${side} in the median)`;
}
