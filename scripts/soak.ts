// npm run soak: both regions under load and every fault at once; then every promise is checked.
import { parseArgs } from "node:util";

const HELP = `npm run soak [-- OPTIONS]

Loads both regions at once (open loop: what is due is sent, whatever became of what was sent before) with JSON,
streams, embeddings, clients that leave, slow readers, forged keys, storms of 402 and 429, while objects
are aborted, books go down, links are cut, keys are revoked and each region is killed in turn. Then
everything heals, and every invariant is checked: money to the micro, limits, revocations, answers,
memory. Ends with 1 when one is broken, with 3 when the machine is too slow to judge all of it. Storage
in memory where there is a tmpfs; loopback only.

  --minutes N   length of the load, default 2 (fractions are allowed); healing takes up to 2.5 more
  --rate N      requests a second without storms, 5 to 500, default 60
  --seed N      what is planned: kinds, times, faults; default: a random one, which is said
  --help        this text
`;
/** What an option may be: from more than the first, or from it where it is whole, to the second. */
const BOUNDS = {
  minutes: [0.01, 24 * 60],
  rate: [5, 500],
  seed: [0, Number.MAX_SAFE_INTEGER],
} as const;

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    rate: { type: "string", default: "60" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
    help: { type: "boolean", default: false },
  },
});
const names = ["minutes", "rate", "seed"] as const;
const wrong = names.find((name) => {
  const [least, most] = BOUNDS[name];
  return !(Number(options[name]) >= least && Number(options[name]) <= most);
});

if (options.help) {
  console.log(HELP);
} else if (wrong !== undefined) {
  console.error(`--${wrong} must be a number from ${BOUNDS[wrong].join(" to ")}\n\n${HELP}`);
  process.exitCode = 2;
} else {
  await main();
}

async function main(): Promise<void> {
  const stop = new AbortController();
  const started = (): void => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.removeAllListeners(signal); // miniflare's, which exit before the regions are stopped
      process.on(signal, () => stop.abort());
    }
  };
  started();
  const [minutes, rate, seed] = names.map((name) => Number(options[name]));
  progress(`seed ${seed}`);
  const { soak } = await import("./soak/run.ts"); // slow to load: help and refusals need not wait for it
  const { isIntact, notJudged, textOf } = await import("./soak/report.ts");
  const wish = { minutes: minutes ?? 0, rate: rate ?? 0, seed: Math.floor(seed ?? 0) };
  const report = await soak({ ...wish, progress, started }, stop.signal);
  if (report === null) {
    progress("stopped before the end: nothing was judged");
    process.exit(130); // timers of what was under way would keep it
  }
  console.log(textOf(report));
  if (!isIntact(report)) process.exit(1);
  process.exit(notJudged(report) === undefined ? 0 : 3); // 3: nothing broken, but too slow to judge all of it
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}
