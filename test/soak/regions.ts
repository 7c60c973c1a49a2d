import { randomBytes } from "node:crypto";
import path from "node:path";
import type { AdminClient } from "../../scripts/admin-client.ts";
import { bundleWorker } from "../../scripts/bundle.ts";
import { FaultProxy } from "../fakes/fault-proxy.ts";
import { freePort } from "../../scripts/ports.ts";
import { HOST, linkBindings, startRegion } from "../../scripts/region.ts";
import type { Region } from "../../scripts/region.ts";
import { PAIR } from "../../scripts/region-names.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { modelOf, startUpstream } from "../fakes/upstream.ts";
import { removeDirectory, temporaryDirectory } from "../../scripts/tmpfs.ts";
import { Log } from "./log.ts";

// heaps are measured without garbage
process.env["MINIFLARE_WORKERD_V8_FLAGS"] ??= "--expose-gc --trace-gc";
export const REGIONS = PAIR;
const ENTRY = path.join(import.meta.dirname, "../workers/faulty.ts");
const CONTROL_MS_MAX = 20_000;

/** A region under load. */
export type SoakedRegion = Region & {
  readonly name: PairName;
  readonly admin: AdminClient;
  /** The proxy for the other region's requests. */
  readonly line: FaultProxy;
  /** Starts a fault or a collection, or reads stored data. Throws while the region is down. */
  readonly control: <T>(
    what: "abort" | "book" | "cron" | "look" | "rows" | "collect",
    body?: object,
  ) => Promise<T>;
};
export type SoakRegions = Awaited<ReturnType<typeof startSoakRegions>>;
/** Maximum lives of a request and of holds in seconds, short so that abandoned ones end soon. */
export type Times = {
  readonly deadlineS: number;
  readonly holdS: number;
  readonly peerHoldS: number;
};

/** Small, so that a slot that isn't released is noticed soon. */
const IN_FLIGHT_MAX = 16;
/** How long a request continues after a disconnect. */
export const DRAIN_MS = 4000;
/** Prices of the provider's models in micro-credits per million tokens. */
export const MOCK_PRICES = {
  chat: { input: 1_500_000, output: 3_000_000 },
  embeddings: { input: 700_000 },
} as const;

/** Starts both regions with faults, a provider, and a proxy in each direction. */
export async function startSoakRegions(times: Times) {
  const directory = temporaryDirectory("turnpike-soak-");
  const removeAtExit = (): void => removeDirectory(directory);
  process.on("exit", removeAtExit); // runs whenever the process exits
  const log = new Log();
  const [code, upstream] = await Promise.all([bundleWorker(false, ENTRY), startUpstream()]);
  const ports = { eu: await freePort(), us: await freePort() };
  const lines = {
    eu: await FaultProxy.start(`http://${HOST}:${ports.eu}`),
    us: await FaultProxy.start(`http://${HOST}:${ports.us}`),
  };
  const [token, keys, link] = [secret(), secret(), secret()];
  const start = async (name: PairName): Promise<SoakedRegion> => {
    const peer = name === "eu" ? "us" : "eu";
    const region = await startRegion({
      region: name,
      port: ports[name],
      peers: [{ region: peer, url: lines[peer].url }],
      directory: path.join(directory, name),
      code,
      bindings: {
        ADMIN_TOKEN: token,
        KEY_SECRETS: `a:${keys}`,
        ...linkBindings(name, link),
        ...bindingsOf(upstream.url, times),
      },
      onLog: (line) => log.take(name, line),
    });
    const admin = { url: `${region.url}admin/v1`, token };
    return { ...region, admin, line: lines[name], control: controlOf(region.url) };
  };
  const regions = { eu: await start("eu"), us: await start("us") };
  const stop = async (): Promise<void> => {
    await Promise.allSettled(REGIONS.map((name) => regions[name].miniflare.dispose()));
    await Promise.allSettled([lines.eu.stop(), lines.us.stop(), upstream.stop()]);
    process.off("exit", removeAtExit);
    removeAtExit();
  };
  /** `directory` has D1 and the objects. `stop` removes it. */
  return { regions, times, log, directory, stop };
}

function secret(): string {
  return randomBytes(24).toString("hex");
}

/**
 * `mock/flaky` fails one time in three and has a second route. The others are named after their
 * behavior.
 */
function bindingsOf(url: string, { deadlineS, holdS, peerHoldS }: Times): Record<string, string> {
  const chat = (name: string, ...routes: string[]): object =>
    modelOf(
      `mock/${name}`,
      MOCK_PRICES.chat,
      [name, ...routes].map((route) => ["mock", route]),
    );
  return {
    SANDBOX: "on",
    REQUEST_DEADLINE_S: String(deadlineS),
    HOLD_TTL_S: String(holdS),
    PEER_HOLD_TTL_S: String(peerHoldS),
    DRAIN_S: String(DRAIN_MS / 1000),
    ORGANIZATION_IN_FLIGHT_MAX: String(IN_FLIGHT_MAX),
    PROVIDERS: JSON.stringify([{ id: "mock", base_url: `${url}/v1`, regions: REGIONS }]),
    MODELS: JSON.stringify([
      ...["varied", "broken", "busy", "cutting"].map((name) => chat(name)),
      chat("flaky", "varied"),
      modelOf("mock/embed", MOCK_PRICES.embeddings, [["mock", "embed"]]),
    ]),
  };
}

function controlOf(url: string): SoakedRegion["control"] {
  return async (what, body = {}) => {
    const response = await fetch(`${url}__soak/${what}`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CONTROL_MS_MAX),
    });
    if (!response.ok) throw new Error(`/__soak/${what} answered ${response.status}`);
    // oxlint-disable-next-line typescript/no-unsafe-return -- the entry's own JSON
    return (await response.json()) as never;
  };
}
