import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../ports.ts";
import { HOST } from "../region.ts";
import { removeDirectory } from "../tmpfs.ts";
import { childPids } from "../workerd.ts";
import { progress } from "./figure.ts";
import { completionsOf } from "./gateway.ts";
import type { Stage, Stoppable } from "./gateway.ts";
import { attempt, prepare } from "./load.ts";
import type { Kind, Target } from "./load.ts";

export const OTHERS = ["portkey", "litellm"] as const;
export type OtherGateway = (typeof OTHERS)[number];

type Command = readonly [program: string, ...words: string[]];
/** A gateway's folder, free loopback port and provider URL without a trailing slash. */
type Place = { readonly folder: string; readonly port: number; readonly upstream: string };
/** The installation, start and request format of a gateway at a pinned version. */
type Recipe = {
  readonly version: string;
  /** The installed size in MB. */
  readonly megabytes: number;
  /** The package.json in its folder. */
  readonly manifest?: object;
  readonly install: (folder: string, version: string) => readonly Command[];
  /** Returns the configuration file, if it needs one. */
  readonly config?: (place: Place) => string;
  readonly start: (place: Place) => Command;
  readonly env: Readonly<Record<string, string>>;
  /** Returns the headers that select the provider. */
  readonly headers?: (place: Place) => Readonly<Record<string, string>>;
  /** The API key. By default, the gateway accepts any key. */
  readonly key?: string;
};

const CONFIG = "config.yaml";
/** Marker of a complete installation. Folders without it are installed again. */
const INSTALLED = "installed";
const INSTALL_MS_MAX = 600_000;
const START_MS_MAX = 180_000;
const STOP_MS_MAX = 10_000;
const LOOK_MS = 250;

/**
 * Sets the host of all servers, because Portkey listens on every address and has no option for it.
 */
const LOOPBACK_ONLY = `data:text/javascript,${encodeURIComponent(
  `import { Server } from "node:net";
const { listen } = Server.prototype;
Server.prototype.listen = function (port, host, ...rest) {
  return listen.call(this, port, typeof port === "number" ? "${HOST}" : host, ...rest);
};`,
)}`;

/**
 * The lowest version that Portkey allows. With the newest, streams return 500
 * (github.com/Portkey-AI/gateway/issues/1389).
 */
const PORTKEY_MANIFEST = { overrides: { "@hono/node-server": "1.3.3" } };
/** Number of LiteLLM's workers. With the default of 1, 20 streams per second overload it. */
const LITELLM_WORKERS = 2;
/** LiteLLM's key, without which it doesn't start. */
const LITELLM_KEY = `sk-${randomBytes(32).toString("hex")}`;

const RECIPES: Readonly<Record<OtherGateway, Recipe>> = {
  // Portkey's telemetry is off. "production" turns off the console that shows requests.
  portkey: {
    version: "1.15.2",
    megabytes: 25,
    manifest: PORTKEY_MANIFEST,
    install: (folder, version) => [
      [
        "npm",
        "install",
        `--prefix=${folder}`,
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--silent",
        `@portkey-ai/gateway@${version}`,
      ],
    ],
    start: ({ folder, port }) => [
      process.execPath,
      `--import=${LOOPBACK_ONLY}`,
      path.join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js"),
      `--port=${port}`,
      "--headless",
    ],
    env: { NODE_ENV: "production" },
    headers: ({ upstream }) => ({
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${upstream}/v1`,
    }),
  },
  // Telemetry is off (docs.litellm.ai/docs/observability/telemetry). LiteLLM uses the package's
  // price list instead of fetching one.
  litellm: {
    version: "1.106.2",
    megabytes: 742,
    install: (folder, version) => [
      ["python3", "-m", "venv", folder],
      [path.join(folder, "bin/pip"), "install", "--quiet", `litellm[proxy]==${version}`],
    ],
    config: ({ upstream }) => litellmConfig(`${upstream}/v1`),
    start: ({ folder, port }) => [
      path.join(folder, "bin/litellm"),
      `--config=${path.join(folder, CONFIG)}`,
      `--host=${HOST}`,
      `--port=${port}`,
      `--num_workers=${LITELLM_WORKERS}`,
    ],
    env: {
      LITELLM_MASTER_KEY: LITELLM_KEY,
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      DO_NOT_TRACK: "1",
    },
    key: LITELLM_KEY,
  },
};

/** Returns the configuration as JSON, which is also valid YAML. */
function litellmConfig(api_base: string): string {
  const model_list = ["model", "steady"].map((name) => ({
    model_name: `bench/${name}`,
    litellm_params: { model: `openai/bench-${name}`, api_base, api_key: "bench" },
  }));
  return JSON.stringify({ model_list, litellm_settings: { telemetry: false } });
}

/**
 * Starts a gateway in front of the provider. Installs the gateway first if necessary. If the start
 * fails, prints the reason and returns null.
 */
export async function startOther(stage: Stage, other: OtherGateway): Promise<Target | null> {
  try {
    return await startInstalled(stage, other);
  } catch (error) {
    progress("");
    const why = error instanceof Error ? error.message.trim().split("\n").at(-1) : String(error);
    process.stderr.write(`continuing without ${other}: ${why}\n`);
    return null;
  }
}

async function startInstalled({ upstream, keep }: Stage, other: OtherGateway): Promise<Target> {
  const { config, start, env, headers, key } = RECIPES[other];
  const folder = await installIfMissing(other);
  const place: Place = { folder, port: await freePort(), upstream };
  if (config !== undefined) writeFileSync(path.join(folder, CONFIG), config(place));
  progress(`starting ${other}`);
  const [program, ...words] = start(place);
  // The gateway gets none of this process's settings, because proxies and provider keys would
  // change the results.
  const { PATH = "" } = process.env;
  const child = spawn(program, words, {
    cwd: folder,
    env: { PATH, HOME: folder, ...env },
    stdio: "ignore",
  });
  keep(stopOnExit(child));
  const target: Target = {
    name: other,
    url: completionsOf(`http://${HOST}:${place.port}/`),
    keys: key === undefined ? [] : [key],
    pids: [],
    headers: headers?.(place) ?? {},
  };
  await waitUntilReady(target, child);
  return { ...target, pids: pidsOf(child) };
}

/** Returns the gateway's folder in the user's cache. Installs the gateway if it is missing. */
async function installIfMissing(other: OtherGateway): Promise<string> {
  const { version, megabytes, manifest, install } = RECIPES[other];
  const cache = process.env["XDG_CACHE_HOME"] ?? path.join(homedir(), ".cache");
  const folder = path.join(cache, "turnpike-bench", `${other}-${version}`);
  if (existsSync(path.join(folder, INSTALLED))) return folder;
  progress(`installing ${other} ${version}, about ${megabytes} MB, in ${folder}`);
  removeDirectory(folder);
  mkdirSync(folder, { recursive: true });
  if (manifest !== undefined) {
    writeFileSync(path.join(folder, "package.json"), JSON.stringify(manifest));
  }
  const beganAt = performance.now();
  for (const [program, ...words] of install(folder, version)) {
    await promisify(execFile)(program, words, { cwd: folder, timeout: INSTALL_MS_MAX });
  }
  writeFileSync(path.join(folder, INSTALLED), version);
  const seconds = Math.round((performance.now() - beganAt) / 1000);
  progress(`installed ${other} ${version} in ${seconds} s`);
  return folder;
}

/** Returns the IDs of the process and its children, or none if the process has ended. */
function pidsOf(child: ChildProcess): number[] {
  const { pid } = child;
  return pid === undefined || hasEnded(child) ? [] : [pid, ...childPids(pid)];
}

/** Returns a handle that stops the process. The process is also killed when this process ends. */
function stopOnExit(child: ChildProcess): Stoppable {
  const kill = (): void => {
    for (const pid of pidsOf(child).toReversed()) process.kill(pid, "SIGKILL");
  };
  process.on("exit", kill);
  child.on("error", () => {
    // A failed start doesn't respond, which `waitUntilReady` reports.
  });
  return {
    stop: async () => {
      process.off("exit", kill);
      if (hasEnded(child)) return;
      const late = setTimeout(kill, STOP_MS_MAX);
      child.kill();
      await once(child, "exit");
      clearTimeout(late);
    },
  };
}

/** Waits until the gateway returns complete JSON and a complete stream. Throws after a timeout. */
async function waitUntilReady(target: Target, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_MS_MAX;
  for (const kind of ["json", "stream"] satisfies Kind[]) {
    const asked = prepare(target, { kind, words: 8, pace: "steady" });
    let outcome = await attempt(target, asked);
    while (outcome.status === 0 && !hasEnded(child) && performance.now() < deadline) {
      await sleep(LOOK_MS);
      outcome = await attempt(target, asked);
    }
    if (hasEnded(child)) throw new Error("it ended before it responded");
    if (outcome.status !== 200 || !outcome.isWhole) {
      const tail = outcome.tail.replaceAll("\n", " ");
      throw new Error(`it responded to a ${kind} request with ${outcome.status} ${tail}`);
    }
  }
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}
