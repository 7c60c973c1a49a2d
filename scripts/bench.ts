// npm run bench: compares the cost of a completion with that of a plain pass-through Worker in the
// same run.
import { InvalidArgumentError, Option } from "commander";
import { wholeNumber } from "./admin/arguments.ts";
import { measureAgainst } from "./bench/against.ts";
import { OTHERS } from "./bench/other-gateways.ts";
import type { OtherGateway } from "./bench/other-gateways.ts";
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

const WHAT = `Measures a completion through the gateway, in its home region and, with a global key, in the other region. Compares
it with a plain pass-through Worker (the floor) and with the provider process itself: CPU per request of the
workerd processes, times, rows, calls and list price. The gateway runs with key objects, wallet, outbox and
metrics. Connects directly to workerd. Storage is in memory if there is a tmpfs. Takes about two minutes.`;
const HOW = `
CPU: every round measures floor, pump, home and peer in short slices of 8 concurrent requests: 100 JSON
requests (300 for the floor) or 8 streams. Every second round reverses the order, so that a slow second of the
machine affects all of them. Uncounted requests before a slice wake its processes. A slice ends when the
processes are quiet, so it includes work after the response. A ratio is the median of the rounds' ratios.
"least" is the minimum CPU of any slice, and for ratios the ratio of both minimums. Streams with a word every
20 ms run through floor, pump and gateway at the same time.
Times: slices of 25 requests in the same rounds, JSON one at a time and streams of 10 words two at a time.
"over direct" and "over floor" are differences of quantiles.
--against builds a commit with the packages that are installed here. Every round measures each slice of both
gateways, in reverse order the next time. Each commit counts calls and rows with its own counters.
--open and --hot are open loops. Times start when a request is due. Load and provider run on this machine.
--open measures direct, floor, home and peer in turn. Every figure is the median of the rounds. JSON is timed
to the last byte, and streams of 60 words, one every 5 ms, to the first.
--hot measures pairs of runs. It exits with 1 if the other organizations' p99 rises by more than 20%, if one of
their requests fails, or if no request of the busy organization is shed.`;

const RATES = "10,50,200,s20";
const whole = wholeNumber(1, 1e9);

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
    .option("--rounds <n>", "rounds of slices; by default 20, or 5 with --open or --hot", whole)
    .option("--against <commit>", "compare with the gateway of a commit in the same rounds")
    .option("--open", "measure the added time at constant rates")
    .option(
      "--requests <n>",
      "with --open: requests of each rate and target; p99.9 needs the default",
      whole,
      10_000,
    )
    .addOption(listOf("--places <p,...>", "with --open", OPEN_PLACES).default(OPEN_PLACES))
    .addOption(
      new Option("--rates <r,...>", "with --open: requests per second; s marks streams")
        .argParser(ratesOf)
        .default(ratesOf(RATES), RATES),
    )
    .addOption(
      listOf(
        "--beside <g,...>",
        "with --open: other gateways, installed in the user's cache",
        OTHERS,
      ).default([]),
    )
    .option(
      "--hot",
      "measure one wallet under load, and 24 organizations next to an overloaded one",
    )
    .option("--seconds <n>", "with --hot: measured seconds of each run", whole, 12)
    .option("--json", "print the figures as JSON: { figures, rounds }")
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

/** Returns an option that takes a comma-separated subset of `all`. */
function listOf(flags: string, what: string, all: readonly string[]): Option {
  return new Option(flags, `${what}: some of ${all.join(", ")}`).argParser((text) => {
    const some = text.split(",").map((word) => all.find((one) => one === word));
    if (!some.includes(undefined)) return [...new Set(some)];
    throw new InvalidArgumentError(`It must be a comma-separated list of ${all.join(", ")}.`);
  });
}
