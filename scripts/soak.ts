// npm run soak: puts load and all faults on both regions, then checks every promise.
import { InvalidArgumentError } from "commander";
import { programOf, runProgram } from "./program.ts";

const HELP = `Puts load on both regions, then checks every promise. The load is an open loop: each request is sent on time,
regardless of earlier ones. It has JSON, streams, embeddings, disconnects, slow readers, forged keys and
storms of 402 and 429. Meanwhile, objects are aborted, databases and links fail, keys are revoked and each
region is killed in turn. After both regions recover, the soak checks money to the micro-credit, limits,
revocations, responses and memory. Exits with 1 if a promise is broken, or 3 if the machine is too slow to
check all of them. Storage is in memory if there is a tmpfs. All traffic is on loopback.`;

await runProgram(async (given) => {
  const program = programOf("soak", HELP)
    .option(
      "--minutes <n>",
      "minutes of load; the recovery takes up to 4 more",
      numberIn(0.01, 1440),
      2,
    )
    .option("--rate <n>", "requests per second without storms", numberIn(5, 500), 60)
    .option("--seed <n>", "seed of the plan; by default random, and printed", numberIn(0, 1e15))
    .parse(given, { from: "user" });
  type SoakOptions = { readonly minutes: number; readonly rate: number; readonly seed?: number };
  const { minutes, rate, seed = Math.floor(Math.random() * 1e9) } = program.opts<SoakOptions>();
  const stop = new AbortController();
  const started = (): void => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      // Miniflare's handlers exit before the regions are stopped.
      process.removeAllListeners(signal);
      process.on(signal, () => stop.abort());
    }
  };
  started();
  progress(`seed ${seed}`);
  // The soak loads slowly, so help and wrong usage don't import it.
  const { soak } = await import("../test/soak/run.ts");
  const { exitCodeOf, textOf } = await import("../test/soak/report.ts");
  const options = { minutes, rate, seed: Math.floor(seed), progress, started };
  const report = await soak(options, stop.signal);
  if (report === null) {
    progress("stopped early: nothing was checked");
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
