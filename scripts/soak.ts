// npm run soak: both regions under load and every fault at once; then every promise is checked.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Report } from "./soak/report.ts";

const HELP = `npm run soak [-- OPTIONS]

Loads both regions at once (open loop: latency counts from when a request was to be sent) with JSON,
streams, embeddings, clients that leave, slow readers, forged keys, storms of 402 and 429, while objects
are aborted, books go down, links are cut, keys are revoked and each region is killed in turn. Then
everything heals, and every invariant is checked: money to the micro, limits, revocations, answers,
memory. Ends with 1 when one is broken, with 3 when the machine is too slow to judge all of it. Storage
in memory where there is a tmpfs; loopback only.

  --minutes N   length of the load, default 2 (fractions are allowed); healing takes up to 2.5 more
  --rate N      requests a second without storms, 5 to 500, default 60
  --seed N      what is planned: kinds, times, faults; default: a random one, which is said
  --json FILE   the report as JSON too
  --help        this text
`;
const RATES = { least: 5, most: 500 } as const;

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    rate: { type: "string", default: "60" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const wish = {
  minutes: Number(options.minutes),
  rate: Number(options.rate),
  seed: Number(options.seed),
};
const problem = problemOf(wish);

if (options.help) {
  console.log(HELP);
} else if (problem !== null) {
  console.error(`${problem}\n\n${HELP}`);
  process.exitCode = 2;
} else {
  await main();
}

async function main(): Promise<void> {
  const stop = new AbortController();
  const listen = (): void => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.removeAllListeners(signal); // miniflare's, which exit before the regions are stopped
      process.on(signal, () => stop.abort());
    }
  };
  listen();
  progress(`seed ${wish.seed}`);
  const { soak } = await import("./soak/run.ts"); // slow to load: help and refusals need not wait for it
  const { textOf } = await import("./soak/report.ts");
  const report = await soak({ ...wish, progress, started: listen }, stop.signal);
  if (report === null) {
    progress("stopped before the end: nothing was judged");
    process.exit(130); // timers of what was under way would keep it
  }
  console.log(textOf(report));
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (options.json !== undefined) writeFileSync(options.json, json);
  process.exit(codeOf(report));
}

/** 3: nothing is broken, but the machine was too slow to judge all of it. */
function codeOf({ isIntact, isJudged }: Report): number {
  if (!isIntact) return 1;
  return isJudged ? 0 : 3;
}

function problemOf({ minutes, rate, seed }: typeof wish): string | null {
  if (!(minutes > 0 && minutes <= 24 * 60)) return "--minutes must be a number from 0 to 1440";
  if (!(rate >= RATES.least && rate <= RATES.most)) return "--rate must be a number from 5 to 500";
  return Number.isSafeInteger(seed) && seed >= 0 ? null : "--seed must be a whole number from 0";
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}
