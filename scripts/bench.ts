// npm run bench: compares the cost of a completion with that of a plain pass-through Worker in the
// same run.
import { InvalidArgumentError, Option } from "commander";
import { measureAgainst } from "./bench/against.ts";
import { OTHERS } from "./bench/beside.ts";
import type { OtherGateway } from "./bench/beside.ts";
import { measureCosts } from "./bench/costs.ts";
import { mark, progress, table } from "./bench/figure.ts";
import type { Report } from "./bench/figure.ts";
import { openStage } from "./bench/gateway.ts";
import type { Stage } from "./bench/gateway.ts";
import { measureHot } from "./bench/hot.ts";
import { measureOpen, OPEN_PLACES, ratesOf } from "./bench/open.ts";
import type { OpenPlace, Rate } from "./bench/open.ts";
import { programOf, runProgram } from "./program.ts";
import { removeDirectory, temporaryDirectory } from "./tmpfs.ts";

const WHAT = `Measures a completion through the gateway, at home and in the other region with a global key, against a
bare pass-through Worker (the floor) and the upstream mock alone: CPU per request of the workerd processes,
times, rows, calls, list price. Everything is on: register, wallet, outbox, metrics. Direct workerd sockets,
storage in memory where there is a tmpfs. About two minutes.`;
const HOW = `
How CPU is taken: every round visits floor, pump, home and peer in short slices (100 JSON requests, 300 of
the floor, or 8 streams, 8 at a time), in the opposite order each time, so that a machine that is slow for
a second is slow for all of them. Some requests before a slice wake its processes and do not count; it ends
when they are quiet, so what an answer leaves to be done is in it. A ratio is the median of the rounds' own;
"least" is the least CPU of any slice, in a ratio's row the ratio of the two. Streams at 20 ms a word run
through floor, pump and gateway at the same time. Times: slices of 25 in the same rounds, JSON one at a time,
streams of 10 words two at a time; "over direct" and "over floor" are differences of quantiles.
--against: commit C is built with the packages that are installed here; every round takes each slice from both
gateways, the other way round next time. Calls and rows are counted by either commit's own counters.
--open and --hot are open loops, times from when a request was due, load and upstream on the same machine. --open: direct, floor, home and peer in turn, every figure
the median of the rounds' own; JSON to its last byte, streams of 60 words, one every 5 ms, to their first. --hot:
pairs of runs, ends with 1 when the others' p99 rises by more than 20 %, one of them is not served, or nothing of
the hot one's is shed.`;

const RATES = "10,50,200,s20";

type Options = {
  readonly rounds?: number;
  readonly against?: string;
  readonly open?: true;
  readonly requests: number;
  readonly places: readonly OpenPlace[];
  readonly rates: readonly Rate[];
  readonly beside: readonly OtherGateway[];
  readonly hot?: true;
  readonly seconds: number;
  readonly json?: true;
};

await runProgram(async (given) => {
  const program = programOf("bench", WHAT)
    .addHelpText("after", HOW)
    .option("--rounds <n>", "rounds of slices, 20; of --open and --hot 5", whole)
    .option("--against <commit>", "this gateway and that of a commit in the same rounds")
    .option("--open", "what is added at steady rates, most of all in the tail")
    .option(
      "--requests <n>",
      "with --open: of each rate at each place; p99.9 needs the default",
      whole,
      10_000,
    )
    .addOption(listOf("--places <p,...>", "with --open", OPEN_PLACES).default(OPEN_PLACES))
    .addOption(
      new Option("--rates <r,...>", "with --open: a second, of streams after an s")
        .argParser(ratesOf)
        .default(ratesOf(RATES), RATES),
    )
    .addOption(
      listOf("--beside <g,...>", "with --open: installed in the user's cache", OTHERS).default([]),
    )
    .option(
      "--hot",
      "one wallet pressed, and what 24 organizations wait for beside one at overload",
    )
    .option("--seconds <n>", "with --hot: measured time of each run", whole, 12)
    .option("--json", "the figures as JSON: { figures, rounds }")
    .parse(given, { from: "user" });
  const options = program.opts<Options>();
  const directory = temporaryDirectory("turnpike-bench-");
  process.on("exit", () => removeDirectory(directory)); // also after Ctrl-C
  const stage = await openStage(directory);
  try {
    return show(await measure(stage, options), options.json === true);
  } catch (error) {
    progress("");
    console.error(error);
    return 1;
  } finally {
    await stage.stop();
  }
});

function measure(stage: Stage, options: Options): Promise<Report> {
  const { rounds = options.open || options.hot ? 5 : 20, seconds, against } = options;
  if (options.hot) return measureHot(stage, { rounds, seconds, against });
  if (options.open) return measureOpen(stage, { ...options, rounds });
  return against === undefined
    ? measureCosts(stage, rounds)
    : measureAgainst(stage, against, rounds);
}

/** Returns the exit code: 1 if the measurement is a failure. */
function show(report: Report, asJson: boolean): number {
  const { figures, more, tables = [table(figures)], how, isMissed } = report;
  progress("");
  if (asJson) {
    const marked = figures.map((figure) => Object.assign({ mark: mark(figure) }, figure));
    console.log(JSON.stringify({ ...more, figures: marked }, null, 2));
  } else {
    console.log(tables.join("\n\n"));
    if (how !== undefined) console.log(`\n${how} How: npm run bench -- --help`);
  }
  return isMissed === true ? 1 : 0;
}

function whole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError("It must be a whole number from 1.");
}

/** Returns an option that takes a comma-separated subset of `all`. */
function listOf(flags: string, what: string, all: readonly string[]): Option {
  return new Option(flags, `${what}: some of ${all.join(", ")}`).argParser((text) => {
    const some = text.split(",").map((word) => all.find((one) => one === word));
    if (!some.includes(undefined)) return [...new Set(some)];
    throw new InvalidArgumentError(`It takes some of these with commas: ${all.join(", ")}.`);
  });
}
