// npm run bench: what a completion costs, beside a bare pass-through Worker, in one run.
import { cpus } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { againstFigures, commitOf, measureAgainst } from "./bench/against.ts";
import { startBareWorker, startUpstream } from "./bench/bare-workers.ts";
import { countCompletions } from "./bench/count.ts";
import { doorFigures, measureDoors } from "./bench/doors.ts";
import { mark, table } from "./bench/figure.ts";
import type { Figure } from "./bench/figure.ts";
import { costFigures } from "./bench/figures.ts";
import type { Measured } from "./bench/figures.ts";
import { startGateway } from "./bench/gateway.ts";
import { HELP } from "./bench/help.ts";
import { hotFigures, measureHot } from "./bench/hot.ts";
import { kneeFigures, measureKnees } from "./bench/knee-run.ts";
import { latencyFigures, latencyTable, linkFigures } from "./bench/latency.ts";
import { linkRoundTrip } from "./bench/link-time.ts";
import { closeConnections } from "./bench/load.ts";
import { openFigures, openTable } from "./bench/open-figures.ts";
import { measureOpen, OPEN_PLACES, placesOf, RATES, ratesOf } from "./bench/open.ts";
import { watchOthers } from "./bench/others.ts";
import { progress } from "./bench/progress.ts";
import { measureRounds, requestsOf, warmUp } from "./bench/rounds.ts";
import type { Stoppable } from "./bench/target.ts";
import { removeDirectory, temporaryDirectory, tmpfsMount } from "./tmpfs.ts";
import { cpuSource } from "./workerd.ts";

const KEY_PER_MINUTE = 1000;
const LINK_MS_MAX = 1000; // a peer gives up on home after 2 s

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string" },
    "link-ms": { type: "string" },
    against: { type: "string" },
    doors: { type: "boolean", default: false },
    open: { type: "boolean", default: false },
    rates: { type: "string" },
    places: { type: "string" },
    requests: { type: "string", default: "10000" },
    knee: { type: "boolean", default: false },
    hot: { type: "boolean", default: false },
    instant: { type: "boolean", default: false },
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
const linkMs = options["link-ms"] === undefined ? undefined : Number(options["link-ms"]);

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
} else if (linkMs !== undefined && !(linkMs > 0 && linkMs <= LINK_MS_MAX)) {
  misused(`--link-ms must be a number of ms, more than 0 and at most ${LINK_MS_MAX}`);
} else {
  await main();
}

async function main(): Promise<void> {
  const directory = temporaryDirectory("turnpike-bench-");
  process.on("exit", () => removeDirectory(directory)); // also after Ctrl-C
  const stops: Stoppable[] = [{ stop: closeConnections }];
  try {
    if (options.knee) await knee(directory, stops);
    else if (options.hot) await hot(directory, stops);
    else if (options.doors) await doors(directory, stops);
    else if (options.open) await open(directory, stops);
    else if (options.against !== undefined) await against(options.against, directory, stops);
    else report(await measure(directory, stops));
  } catch (error) {
    progress("");
    console.error(error);
    process.exitCode = 1;
  }
  await Promise.allSettled(stops.map(({ stop }) => stop()));
}

async function measure(directory: string, stops: Stoppable[]): Promise<Measured> {
  const kept = <T extends Stoppable>(started: T): T => {
    stops.push(started);
    return started;
  };
  progress("starting");
  const direct = kept(await startUpstream());
  const upstream = direct.base;
  const floor = kept(await startBareWorker("floor", upstream));
  const pump = kept(await startBareWorker("pump", upstream));
  const keys = Math.ceil((1.5 * requestsOf(rounds)) / KEY_PER_MINUTE);
  const gateway = kept(
    await startGateway({ upstream, directory: path.join(directory, "gateway"), keys, linkMs }),
  );
  const { homeUrl, homeUrlFromFar } = gateway;
  const targets = { direct, floor, pump, ...gateway };
  progress("warming up, and counting rows and calls");
  const counting = { upstream, directory: path.join(directory, "counting") };
  const [counted] = await Promise.all([countCompletions(counting), warmUp(targets)]);
  const link = homeUrlFromFar === null ? null : await linkRoundTrip(homeUrlFromFar, homeUrl);
  const others = watchOthers();
  const measured = await measureRounds(targets, rounds);
  return { ...measured, counted, linkMs: link, others: others() };
}

function report(measured: Measured): void {
  const { samples, cpu } = measured;
  const costs = costFigures(measured);
  progress("");
  if (options.json) {
    printJson([...costs, ...latencyFigures(samples, measured.linkMs)], { rounds: cpu });
    return;
  }
  const link = linkFigures(samples, measured.linkMs);
  const storage = tmpfsMount() === null ? "on disk (no tmpfs here)" : "in memory";
  console.log(`${table(costs)}\n\n${latencyTable(samples)}`);
  if (link.length > 0) console.log(`\n${table(link)}`);
  console.log(
    `\nMedians of ${cpu.json.length} JSON rounds, ${cpu.stream.length} of streams (200 words, one every 2 ms) and ` +
      `${cpu.typical.length} at 20 ms a word; CPU of the workerd processes from ${cpuSource()}; storage ${storage}; ` +
      `${cpus().length} cores; counts over ${measured.counted.completions} completions and one publish. ` +
      `How: npm run bench -- --help`,
  );
}

async function against(named: string, directory: string, stops: Stoppable[]): Promise<void> {
  const commit = commitOf(named);
  const measured = await measureAgainst(commit, rounds, directory, stops);
  const figures = againstFigures(measured, commit);
  progress("");
  if (options.json) printJson(figures, { commit, rounds: measured.pairs });
  else {
    console.log(table(figures));
    console.log(
      `\n${rounds} rounds, both gateways in turn, there and back; a ratio is the median of the rounds' own. ` +
        `How: npm run bench -- --help`,
    );
  }
}

async function doors(directory: string, stops: Stoppable[]): Promise<void> {
  const measured = await measureDoors(rounds, directory, stops);
  const figures = doorFigures(measured);
  progress("");
  if (options.json) printJson(figures, { rounds: measured });
  else console.log(table(figures));
}

async function open(directory: string, stops: Stoppable[]): Promise<void> {
  const asked = { rates: rates ?? RATES, places: places ?? OPEN_PLACES, requests, rounds };
  const measured = await measureOpen(asked, directory, stops);
  const figures = openFigures(measured.open, measured.others);
  progress("");
  if (options.json) printJson(figures, { rounds });
  else {
    console.log(`${table(figures)}\n\n${openTable(measured.open)}`);
    console.log(
      `\n${requests} requests a rate and place, in ${rounds} rounds there and back, of which all figures are the medians; ` +
        `times from when each was due; streams: the first byte. How: npm run bench -- --help`,
    );
  }
}

async function knee(directory: string, stops: Stoppable[]): Promise<void> {
  const knees = await measureKnees(directory, stops);
  const figures = kneeFigures(knees);
  progress("");
  for (const which of ["all", "one"] as const) {
    const text = `the knee of ${which} was not reached in time: it is higher, or no rate held`;
    if (!knees[which].isFound) console.error(text);
  }
  if (options.json) {
    printJson(figures, { steps: { all: knees.all.steps, one: knees.one.steps } });
    return;
  }
  console.log(table(figures));
  console.log(
    `\n${cpus().length} cores, which the load and the upstream share; JSON answered at once by the upstream. ` +
      `How: npm run bench -- --help`,
  );
}

/** Ends with 1 when the others were slowed beyond the budget or refused, or the hot one was never shed. */
async function hot(directory: string, stops: Stoppable[]): Promise<void> {
  const asked = { rounds, seconds, isInstant: options.instant };
  const measured = await measureHot(asked, directory, stops);
  const figures = hotFigures(measured.pairs, measured.others);
  const isShed = measured.pairs.some(({ beside }) =>
    beside.hot.some(({ status }) => status === 503),
  );
  const isKept = isShed && figures.every((figure) => mark(figure) !== "OVER");
  if (!isKept && !options.instant) process.exitCode = 1;
  progress("");
  if (options.json) return printJson(figures, { rounds });
  console.log(table(figures));
  console.log(
    `\nMedians of ${rounds} paired runs of ${seconds} s, without the hot organisation and beside it; times from when ` +
      `each request was due; load, upstream and gateway on this machine. How: npm run bench -- --help`,
  );
}

function printJson(figures: readonly Figure[], more: object): void {
  const marked = figures.map((figure) => ({ ...figure, mark: mark(figure) }));
  console.log(JSON.stringify({ ...more, figures: marked }, null, 2));
}

function misused(what: string): void {
  console.error(`${what}\n\n${HELP}`);
  process.exitCode = 2;
}
