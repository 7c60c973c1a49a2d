// npm start: runs the regions on workerd with a persistent state and a demo organization in each.
import path from "node:path";
import { bundleWorker } from "./bundle.ts";
import { developerBindings } from "./dev-bindings.ts";
import { ensureDemo, readDemo } from "./dev-demo.ts";
import { isInGroup, onParentGone, runInGroup } from "./dev-group.ts";
import { lockState, StateRefused } from "./dev-state.ts";
import { enableAutoTopUp, servePayments } from "./dev-payments.ts";
import { localSecrets, portOf, portVariable, stateDirectory } from "./dev-settings.ts";
import { serveIssuer, signUpLocally } from "./dev-issuer.ts";
import { CRON_SCHEDULES } from "../src/operator/crons.ts";
import { makeShowcase, readShowcase } from "./dev-showcase.ts";
import { HELP, welcome } from "./dev-words.ts";
import { freePort, isPortInUse } from "./ports.ts";
import { HOST, linkBindings, startRegion } from "./region.ts";
import type { LogLine, Region } from "./region.ts";
import { byRegion, callEach, FIRST_REGION, REGION_NAMES } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";
import { buildSite } from "./site/build.ts";
import { removeDirectory } from "./tmpfs.ts";

/** Cron schedules with their interval in ms. */
const CRON_TIMES = [
  [CRON_SCHEDULES.hourly, 3_600_000],
  [CRON_SCHEDULES.watch, 180_000],
  [CRON_SCHEDULES.round, 60_000],
] as const;
const LOG_LINES_KEPT = 200;
/** Offset of the identity provider's port from the first region's port. */
const ISSUER_PORT = 10;
/** Offset of the payment provider's port from the first region's port. */
const PAYMENTS_PORT = 11;
/**
 * Distance between two sets of ports. Larger than the ports that the regions and services of one
 * start need.
 */
const PORT_STEP = 20;
const PORT_MAX = 65_535;

/** The reason why the regions can't start, as a message for the user. */
class CannotStart extends Error {}

const startedAt = performance.now();
const recentLog: string[] = [];
let showLog = false;

// The terminal is gone. Exiting also stops workerd.
process.stdout.on("error", () => process.exit(0));
if (isInGroup()) await runRegions();
else runInGroup();

async function runRegions(): Promise<void> {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    const isOurs = error instanceof CannotStart || error instanceof StateRefused;
    console.error(isOurs ? error.message : (fileProblem(error) ?? error));
    process.exit(1);
  }
}

/** Returns a message if the error is about a file or folder, else null. */
function fileProblem(error: unknown): string | null {
  if (!(error instanceof Error && "path" in error && "syscall" in error)) return null;
  return `${error.message}. npm start must be able to write to this folder. Choose another folder for the state with DEV_DIR, or change the permissions.`;
}

async function main(flags: readonly string[]): Promise<void> {
  const unknown = flags.find((flag) => !["--help", "--clean", "--demo"].includes(flag));
  if (unknown !== undefined) throw new CannotStart(`unknown option ${unknown}\n\n${HELP}`);
  if (flags.includes("--help")) return console.log(HELP);
  const ports = await callEach(usablePort);
  if (new Set(Object.values(ports)).size < REGION_NAMES.length) {
    throw new CannotStart(`${REGION_NAMES.map(portVariable).join(" and ")} must differ.`);
  }
  const directory = stateDirectory();
  lockState(directory);
  if (flags.includes("--clean")) removeState(directory);
  readDemo(directory); // reports an invalid file before anything starts
  const { KEY_SECRETS, ADMIN_TOKEN, LINK_SECRET: link } = localSecrets(directory);
  const login = await localIssuer(ports[FIRST_REGION] + ISSUER_PORT);
  const own = { SANDBOX: "on", KEY_SECRETS, ADMIN_TOKEN, ...login };
  const payments = await servePayments(directory, ports[FIRST_REGION] + PAYMENTS_PORT, ports);
  const bindings = byRegion((region) =>
    payments.bindingsOf(region, localLogins({ ...own, ...developerBindings(region) })),
  );
  if (flags.includes("--demo")) await fillDemo({ ports, directory, bindings, link });
  const regions = await startAll({ ports, directory, bindings, link });
  stopOnSignal(regions);
  await Promise.all(Object.values(regions).map(requireConfigured));
  const adminToken = bindings[FIRST_REGION]["ADMIN_TOKEN"] ?? ADMIN_TOKEN;
  progress("demo organizations");
  const demo = await ensureDemo(regions, adminToken, directory);
  const showcase = readShowcase(directory);
  const hasPayments = payments.isOf(bindings[FIRST_REGION]);
  if (showcase !== null && hasPayments) {
    progress("automatic top-up of the organization of 90 days");
    await enableAutoTopUp(regions[FIRST_REGION].url, showcase, payments.stripe);
  }
  const account = hasLocalLogin(bindings[FIRST_REGION])
    ? await signUpLocally(regions[FIRST_REGION].url)
    : null;
  progress("ready");
  console.log(
    welcome(demo, { directory, showcase, account, payments: hasPayments ? payments.stripe : null }),
  );
  showLog = true;
  for (const [cron, ms] of CRON_TIMES) setInterval(() => void runCrons(regions, cron), ms);
}

/**
 * Starts the identity provider. Its port must not change, because accounts are identified by its
 * URL. Throws `CannotStart` if the port is taken.
 */
async function localIssuer(port: number): Promise<Readonly<Record<string, string>>> {
  if (await isPortInUse(port)) {
    throw new CannotStart(`Port ${port} is taken, where people log in: choose another EU_PORT.`);
  }
  return (await serveIssuer(port)).bindings;
}

/**
 * Removes the local identity provider if the sandbox is off, because the gateway then requires
 * https.
 */
function localLogins(bindings: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (bindings["SANDBOX"] === "on" || !hasLocalLogin(bindings)) return bindings;
  return { ...bindings, LOGIN_ISSUERS: "", SIGN_UP: "" };
}

function hasLocalLogin(bindings: Readonly<Record<string, string>>): boolean {
  return (bindings["LOGIN_ISSUERS"] ?? "").includes("LOCAL_LOGIN_SECRET");
}

async function usablePort(region: RegionName): Promise<number> {
  const port = portOf(region);
  if (typeof port !== "number") throw new CannotStart(port.problem);
  if (!(await isPortInUse(port))) return port;
  const variable = portVariable(region);
  const other = await freePortAbove(port, region === FIRST_REGION ? [0, ISSUER_PORT] : [0]);
  throw new CannotStart(
    `Port ${port} (${region.toUpperCase()}) is taken. Stop the program that listens there, or choose another port: ${variable}=${other} npm start`,
  );
}

/** Returns a port above this one at which all the offsets are free. */
async function freePortAbove(port: number, offsets: readonly number[]): Promise<number> {
  for (let other = port + PORT_STEP; other + PORT_STEP <= PORT_MAX; other += PORT_STEP) {
    const taken = await Promise.all(offsets.map((offset) => isPortInUse(other + offset)));
    if (!taken.includes(true)) return other;
  }
  return freePort();
}

function removeState(directory: string): void {
  // Removes only the files of these scripts, because DEV_DIR can contain other files.
  for (const name of [
    ...REGION_NAMES,
    "demo.json",
    "secrets.json",
    "showcase.json",
    "stripe.json",
  ]) {
    removeDirectory(path.join(directory, name));
  }
  progress(`forgot the state in ${directory}`);
}

/**
 * Creates the showcase organization in the first region before that region starts, once for each
 * state.
 */
async function fillDemo({ ports, directory, bindings, link }: Start): Promise<void> {
  const name = FIRST_REGION;
  if (bindings[name]["SANDBOX"] !== "on") throw new CannotStart("--demo needs the sandbox.");
  if (readShowcase(directory) !== null) return;
  progress("an organization of 90 days");
  const own = { ...linkBindings(name, link), ...bindings[name] };
  const region = { region: name, port: ports[name], peers: [], bindings: own };
  const at = {
    directory: path.join(directory, name),
    onLog: (line: LogLine) => keepLog(name, line),
  };
  await makeShowcase({ ...region, ...at }, bindings[name]["ADMIN_TOKEN"] ?? "", directory);
}

type Start = {
  readonly ports: Readonly<Record<RegionName, number>>;
  readonly directory: string;
  readonly bindings: Readonly<Record<RegionName, Readonly<Record<string, string>>>>;
  readonly link: string;
};

async function startAll(options: Start): Promise<Record<RegionName, Region>> {
  const { ports, directory, bindings, link } = options;
  // Links between regions use plain http, which only the sandbox allows.
  const isLinked = bindings[FIRST_REGION]["SANDBOX"] === "on";
  if (!isLinked) progress("SANDBOX is off: the regions are not linked");
  progress("bundling");
  const [code] = await Promise.all([bundleWorker(), buildSite()]);
  progress(`bundled ${(code.length / 1024).toFixed(0)} KiB, starting workerd`);
  const start = async (region: RegionName): Promise<Region> => {
    const others = REGION_NAMES.filter((name) => name !== region);
    const peers = others.map((name) => ({ region: name, url: `http://${HOST}:${ports[name]}` }));
    const started = await startRegion({
      region,
      port: ports[region],
      peers: isLinked ? peers : [],
      directory: path.join(directory, region),
      code,
      hasSite: true,
      bindings: {
        DOCS_URL: `http://${HOST}:${ports[region]}/docs`,
        ...linkBindings(region, link),
        ...bindings[region],
      },
      onLog: (line) => keepLog(region, line),
    });
    progress(`${region} answers on ${started.url}`);
    return started;
  };
  return callEach(start);
}

function stopOnSignal(regions: Readonly<Record<RegionName, Region>>): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    console.log("\nstopping");
    const stopped = Object.values(regions).map((region) => region.miniflare.dispose());
    void Promise.allSettled(stopped).then(() => process.exit(0));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.removeAllListeners(signal); // miniflare's handlers exit before everything is written
    process.on(signal, stop);
  }
  onParentGone(stop);
}

/**
 * Throws `CannotStart` if a setting is missing or weak. With such a setting, the Worker returns
 * 503, and its log names the variable.
 */
async function requireConfigured(region: Region): Promise<void> {
  const response = await fetch(`${region.url}v1/balance`);
  const body = await response.text();
  if (response.status !== 503 || !body.includes("misconfigured")) return;
  const lines = recentLog.filter((line) => line.includes("misconfigured"));
  throw new CannotStart(
    [
      `The ${region.name.toUpperCase()} region refuses to serve: a setting is missing or wrong.`,
      ...new Set(lines),
      "Set it in the environment or in .dev.vars (local secrets: secrets.json in the state folder).",
    ].join("\n"),
  );
}

async function runCrons(
  regions: Readonly<Record<RegionName, Region>>,
  cron: string,
): Promise<void> {
  const runs = Object.values(regions).map((region) => region.runCron(cron));
  for (const run of await Promise.allSettled(runs)) {
    if (run.status === "rejected") console.error(`cron: ${run.reason}`);
  }
}

function keepLog(region: RegionName, { level, message }: LogLine): void {
  const line = `[${region}] ${message}`;
  recentLog.push(line);
  if (recentLog.length > LOG_LINES_KEPT) recentLog.shift();
  if (showLog || level === "error") console.log(line);
}

function progress(what: string): void {
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s  ${what}`);
}
