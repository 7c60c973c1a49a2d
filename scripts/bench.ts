// npm run bench: what a completion costs, beside a bare pass-through Worker, in one run.
import { parseArgs } from "node:util";
import { measureAgainst } from "./bench/against.ts";
import { measureCosts } from "./bench/costs.ts";
import { measureDoors } from "./bench/doors.ts";
import { OTHERS, othersOf } from "./bench/beside.ts";
import { mark, progress, table } from "./bench/figure.ts";
import type { Report } from "./bench/figure.ts";
import { openStage } from "./bench/gateway.ts";
import type { Stage } from "./bench/gateway.ts";
import { HELP } from "./bench/help.ts";
import { measureHot } from "./bench/hot.ts";
import { measureKnees } from "./bench/knee.ts";
import { measureOpen, OPEN_PLACES, placesOf, RATES, ratesOf } from "./bench/open.ts";
import { removeDirectory, temporaryDirectory } from "./tmpfs.ts";

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string" },
    against: { type: "string" },
    doors: { type: "boolean", default: false },
    open: { type: "boolean", default: false },
    rates: { type: "string" },
    places: { type: "string" },
    beside: { type: "string" },
    requests: { type: "string", default: "10000" },
    knee: { type: "boolean", default: false },
    hot: { type: "boolean", default: false },
    seconds: { type: "string", default: "12" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const rounds = Number(options.rounds ?? (options.open || options.hot ? "5" : "20"));
const seconds = Number(options.seconds);
const requests = Number(options.requests);
const rates = options.rates === undefined ? RATES : ratesOf(options.rates);
const places = options.places === undefined ? OPEN_PLACES : placesOf(options.places);
const beside = options.beside === undefined ? [] : othersOf(options.beside);

if (options.help) {
  console.log(HELP);
} else if (!Number.isSafeInteger(rounds) || rounds < 1) {
  misused("--rounds must be a whole number from 1");
} else if (!Number.isSafeInteger(requests) || requests < rounds) {
  misused("--requests must be a whole number, at least that of the rounds");
} else if (!Number.isSafeInteger(seconds) || seconds < 1) {
  misused("--seconds must be a whole number from 1");
} else if (rates === null) {
  misused("--rates takes requests a second with commas, those of streams after an s: 10,50,s20");
} else if (places === null) {
  misused(`--places takes some of these with commas: ${OPEN_PLACES.join(", ")}`);
} else if (beside === null || (beside.length > 0 && !options.open)) {
  misused(`--beside, with --open, takes some of these with commas: ${OTHERS.join(", ")}`);
} else {
  await main();
}

async function main(): Promise<void> {
  const directory = temporaryDirectory("turnpike-bench-");
  process.on("exit", () => removeDirectory(directory)); // also after Ctrl-C
  const stage = await openStage(directory);
  try {
    show(await measure(stage));
  } catch (error) {
    progress("");
    console.error(error);
    process.exitCode = 1;
  }
  await stage.stop();
}

function measure(stage: Stage): Promise<Report> {
  if (options.knee) return measureKnees(stage);
  if (options.hot) return measureHot(stage, { rounds, seconds });
  if (options.doors) return measureDoors(stage, rounds);
  if (options.open) {
    const where = { places: places ?? OPEN_PLACES, beside: beside ?? [] };
    return measureOpen(stage, { rates: rates ?? RATES, ...where, requests, rounds });
  }
  if (options.against !== undefined) return measureAgainst(stage, options.against, rounds);
  return measureCosts(stage, rounds);
}

/** Ends with 1 when what was measured is itself a failure. */
function show({ figures, more, tables = [table(figures)], how, isMissed }: Report): void {
  progress("");
  if (isMissed === true) process.exitCode = 1;
  if (options.json) {
    const marked = figures.map((figure) => ({ ...figure, mark: mark(figure) }));
    console.log(JSON.stringify({ ...more, figures: marked }, null, 2));
    return;
  }
  console.log(tables.join("\n\n"));
  if (how !== undefined) console.log(`\n${how} How: npm run bench -- --help`);
}

function misused(what: string): void {
  console.error(`${what}\n\n${HELP}`);
  process.exitCode = 2;
}
