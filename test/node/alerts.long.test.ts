import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveStripe } from "../../scripts/dev-stripe.ts";
import type { ServedStripe } from "../../scripts/dev-stripe.ts";
import { freePort } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { CRON_SCHEDULES } from "../../src/operator/crons.ts";
import { isInstalled, NOT_INSTALLED } from "../documents/prometheus.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockScript, MockProvider } from "../fixtures/openai-mock.ts";
import {
  chunkOf,
  DONE,
  FINISH,
  OPENING,
  openAiEvent,
  usageChunk,
} from "../fixtures/openai-replies.ts";
import { Account } from "./support/account.ts";
import { makeKey, revoke } from "./support/peer-keys.ts";
import { ADMIN_TOKEN, startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";

const RULES = path.join(import.meta.dirname, "../../docs/operate/prometheus-rules.yml");
const HAS_PROMETHEUS = isInstalled("prometheus");
/**
 * Maximum wait for an alert or its end. A route with a rejected key is retried after up to four
 * minutes.
 */
const PATIENT = { timeout: 400_000, interval: 200 };
const TRAFFIC_MS = 100;

function minutes(text: string): string {
  return `${2 * Number(text)}s`;
}

/** Returns the shipped rules with two seconds for each minute, and 2.5 seconds as a slow first byte. */
function hurried(rules: string): string {
  return rules
    .replaceAll(/\[(\d+)m\]/g, (_all, text: string) => `[${minutes(text)}]`)
    .replaceAll(
      /(for: |offset )(\d+)m/g,
      (_all, before: string, text: string) => before + minutes(text),
    )
    .replaceAll(
      /(_seconds\)? > )(\d+)/g,
      (_all, before: string, text: string) => before + Number(text) / 30,
    )
    .replaceAll('le="10"', 'le="2.5"');
}

/** The provider's current behavior. */
let provider: MockScript;
const healthy: MockScript = (_request, response) => {
  const text = [OPENING, chunkOf({ content: "Hello" }), FINISH, usageChunk()].map((one) =>
    openAiEvent(one),
  );
  response.writeHead(200, { "content-type": "text/event-stream" }).end(text.join("") + DONE);
  return true;
};
const slow: MockScript = async (request, response) => {
  await sleep(3500);
  return healthy(request, response);
};
function failing(status: number, headers: Readonly<Record<string, string>> = {}): MockScript {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end('{"error":{"message":"No."}}');
    return true;
  };
}

let mock: MockProvider;
let stripe: ServedStripe;
let regions: FaultyRegions;
let account: Account;
let prometheus: Prometheus;
let traffic: NodeJS.Timeout;
let crons: NodeJS.Timeout;

function target(url: string, region: string): object {
  return { targets: [new URL(url).host], labels: { region } };
}

/** A running Prometheus with the hurried rules and both regions as targets. */
class Prometheus {
  readonly #url: string;
  readonly #directory: string;
  readonly #process: ChildProcess;

  private constructor(url: string, directory: string, child: ChildProcess) {
    this.#url = url;
    this.#directory = directory;
    this.#process = child;
  }

  static async start({ eu, us }: FaultyRegions): Promise<Prometheus> {
    const directory = mkdtempSync(path.join(tmpdir(), "turnpike-prometheus-"));
    const file = (name: string): string => path.join(directory, name);
    writeFileSync(file("rules.yml"), hurried(readFileSync(RULES, "utf8")));
    // JSON is valid YAML.
    const config = {
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: [file("rules.yml")],
      scrape_configs: [
        {
          job_name: "turnpike",
          metrics_path: "/admin/v1/metrics",
          authorization: { credentials: ADMIN_TOKEN },
          static_configs: [target(eu.url, "eu"), target(us.url, "us")],
        },
      ],
    };
    writeFileSync(file("prometheus.yml"), JSON.stringify(config));
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      "prometheus",
      [
        `--config.file=${file("prometheus.yml")}`,
        `--storage.tsdb.path=${file("data")}`,
        `--web.listen-address=${address}`,
        "--log.level=error",
      ],
      { stdio: "ignore" },
    );
    return new Prometheus(`http://${address}`, directory, child);
  }

  /** Returns the names of the alerts that fire, each with its region. */
  async firing(): Promise<readonly string[]> {
    const response = await fetch(`${this.#url}/api/v1/alerts`).catch(() => null);
    if (response?.ok !== true) return ["Prometheus does not answer"];
    const { data } = (await response.json()) as {
      data: { alerts: { state: string; labels: { alertname: string; region?: string } }[] };
    };
    return data.alerts
      .filter(({ state }) => state === "firing")
      .map(({ labels }) => `${labels.alertname} ${labels.region ?? ""}`);
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill();
    await ended;
    removeDirectory(this.#directory);
  }
}

async function setUp(): Promise<void> {
  provider = healthy;
  mock = await startMockProvider();
  mock.script((request, response) => provider(request, response));
  stripe = await serveStripe();
  regions = await startFaultyRegions({
    bindings: {
      METRICS_DELAY_MS: "200",
      PROVIDERS: JSON.stringify([{ id: "watched", base_url: mock.url, regions: ["eu"] }]),
      MODELS: JSON.stringify([
        {
          id: "watched/model",
          kind: "chat",
          context: 128_000,
          max_output: 4096,
          price: { input: 1_000_000, output: 2_000_000 },
          routes: [{ provider: "watched", upstream_id: "model" }],
        },
      ]),
      STRIPE_SECRET_KEY: "sk_test_of_this_machine",
      STRIPE_WEBHOOK_SECRETS: "whsec_of_this_machine",
      STRIPE_BASE_URL: stripe.url,
    },
  });
  const credits = 1_000_000_000;
  account = await Account.open(() => regions.eu, { credits, keyScope: "global" });
  const body = {
    model: "watched/model",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 16,
    stream: true,
  };
  const sendChat = async (): Promise<void> => void (await (await account.chat(body)).text());
  traffic = setInterval(() => void sendChat().catch(() => undefined), TRAFFIC_MS);
  prometheus = await Prometheus.start(regions);
}

function runCrons(): void {
  for (const region of [regions.eu, regions.us]) {
    for (const cron of [CRON_SCHEDULES.watch, CRON_SCHEDULES.hourly]) {
      void region.runCron(cron).catch(() => undefined);
    }
  }
}

const REASONS: readonly (readonly [what: string, alerts: readonly string[], Outage])[] = [
  [
    "a revoked provider key",
    ["TurnpikeProviderKeyRefused eu", "TurnpikeErrors eu"],
    { begin: () => (provider = failing(401)), end: () => (provider = healthy) },
  ],
  [
    "a provider that returns 500",
    ["TurnpikeErrors eu", "TurnpikeRoutesLeftOut eu"],
    { begin: () => (provider = failing(500)), end: () => (provider = healthy) },
  ],
  [
    "a provider that returns 429",
    ["TurnpikeErrors eu", "TurnpikeRoutesLeftOut eu"],
    {
      begin: () => (provider = failing(429, { "retry-after": "2" })),
      end: () => (provider = healthy),
    },
  ],
  [
    "a provider that starts late",
    ["TurnpikeSlowFirstByte eu"],
    { begin: () => (provider = slow), end: () => (provider = healthy) },
  ],
  [
    "an unreachable region with a waiting outbox",
    ["TurnpikeSilent us", "TurnpikeOutboxLate eu"],
    {
      begin: async () => {
        await regions.us.miniflare.dispose();
        const key = await makeKey(regions, account.key);
        await revoke(regions, account.key, key.id);
      },
      end: () => regions.restart("us"),
    },
  ],
  [
    "an unreachable payment provider",
    ["TurnpikePaymentsNotSwept eu", "TurnpikePaymentsNotSwept us"],
    {
      begin: () => stripe.close(),
      end: async () => {
        stripe = await serveStripe({ port: Number(new URL(stripe.url).port) });
      },
    },
  ],
];
type Outage = { readonly begin: () => unknown; readonly end: () => unknown };

async function expectNothingFires(): Promise<void> {
  await expect.poll(() => prometheus.firing(), PATIENT).toEqual([]);
}

describe.skipIf(!HAS_PROMETHEUS)(
  `a Prometheus with the shipped rules${HAS_PROMETHEUS ? "" : ` (${NOT_INSTALLED})`}`,
  () => {
    beforeAll(setUp);
    afterAll(async () => {
      clearInterval(traffic);
      clearInterval(crons);
      await prometheus?.stop();
      await regions?.stop();
      await mock?.close();
      stripe?.close();
    });

    it("raises an alert while cron jobs don't run", async () => {
      const both = ["TurnpikeCronSilent eu", "TurnpikeCronSilent us"];
      await expect.poll(() => prometheus.firing(), PATIENT).toEqual(expect.arrayContaining(both));
      crons = setInterval(runCrons, 1000);
      await expectNothingFires();
    });

    it.each(REASONS)(
      "raises an alert for %s until it ends",
      async (_what, alerts, { begin, end }) => {
        await expectNothingFires();
        await begin();
        await expect
          .poll(() => prometheus.firing(), PATIENT)
          .toEqual(expect.arrayContaining([...alerts]));
        await end();
        await expectNothingFires();
      },
    );
  },
);
