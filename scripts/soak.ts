// npm run soak: puts load and all faults on both regions, then checks every promise.
import { InvalidArgumentError } from "commander";
import { programOf, runProgram } from "./program.ts";

const HELP = `Loads both regions at once (open loop: what is due is sent, whatever became of what was sent before) with JSON,
streams, embeddings, clients that leave, slow readers, forged keys, storms of 402 and 429, while objects
are aborted, books go down, links are cut, keys are revoked and each region is killed in turn. Then
everything heals, and every invariant is checked: money to the micro, limits, revocations, answers,
memory. Ends with 1 when one is broken, with 3 when the machine is too slow to judge all of it. Storage
in memory where there is a tmpfs; loopback only.`;

await runProgram(async (given) => {
  const program = programOf("soak", HELP)
    .option("--minutes <n>", "of load; healing takes up to 4 more", numberIn(0.01, 1440), 2)
    .option("--rate <n>", "requests a second without storms", numberIn(5, 500), 60)
    .option("--seed <n>", "what is planned; a random one is said", numberIn(0, 1e15))
    .parse(given, { from: "user" });
  type Wishes = { readonly minutes: number; readonly rate: number; readonly seed?: number };
  const { minutes, rate, seed = Math.floor(Math.random() * 1e9) } = program.opts<Wishes>();
  const stop = new AbortController();
  const started = (): void => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      // miniflare's handlers exit before the regions are stopped
      process.removeAllListeners(signal);
      process.on(signal, () => stop.abort());
    }
  };
  started();
  progress(`seed ${seed}`);
  // loads slowly, so help and wrong usage don't import it
  const { soak } = await import("../test/soak/run.ts");
  const { exitCodeOf, textOf } = await import("../test/soak/report.ts");
  const wish = { minutes, rate, seed: Math.floor(seed), progress, started };
  const report = await soak(wish, stop.signal);
  if (report === null) {
    progress("stopped before the end: nothing was judged");
    process.exit(130); // timers would keep the process running
  }
  console.log(textOf(report));
  process.exit(exitCodeOf(report));
});

function numberIn(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a number from ${least} to ${most}.`);
  };
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}
