import { afterAll, describe, expect, it } from "vitest";
import { check } from "../../scripts/deploy/check.ts";
import type { Finding } from "../../scripts/deploy/finding.ts";
import { isReady, wordsOf } from "../../scripts/deploy/report.ts";
import type { Report } from "../../scripts/deploy/report.ts";
import { FAULTS, model, provider } from "./support/deploy-faults.ts";
import { DeployFiles, EU_SECRETS, euVars } from "./support/deploy-file.ts";

const TODAY = Date.UTC(2026, 10, 21);
const DAY_MS = 86_400_000;
const files = new DeployFiles();
afterAll(() => files.remove());

type Checking = { readonly names?: readonly string[]; readonly days?: number };

function checked(file: string, { names = EU_SECRETS, days = 0 }: Checking = {}): Promise<Report> {
  const today = TODAY + days * DAY_MS;
  const set = new Set(names);
  return check({ env: "eu", file, names: set, running: null, isAccepted: false, today });
}
const errors = ({ findings }: Report): Finding[] => findings.filter((one) => one.level === "error");
const warnings = ({ findings }: Report): Finding[] =>
  findings.filter((one) => one.level === "warning" && one.where !== "prices");
const prices = async (checking: Checking): Promise<string[]> => {
  const { findings } = await checked(files.write(), checking);
  return findings.filter(({ where }) => where === "prices").map(({ problem }) => problem);
};
const lines = (findings: readonly Finding[]): string[] =>
  findings.map(({ where, problem }) => `${where} ${problem}`);

describe("deploy:check for a region that is ready", () => {
  it("reports no error or warning, and prints a model for every alias", async () => {
    const report = await checked(files.write());
    expect(errors(report)).toEqual([]);
    expect(warnings(report)).toEqual([]);
    expect(isReady(report)).toBe(true);
    expect(Object.fromEntries(report.aliases)).toMatchObject({
      smart: expect.stringMatching(/^openai\//),
      "embeddings/cheapest": "openai/text-embedding-3-small",
    });
    expect(wordsOf(report)).toContain("Next: npx wrangler deploy --env eu");
  });

  it("reports that KEY_SECRETS must be equal in both regions, and how to verify this", async () => {
    const { findings } = await checked(files.write());
    const note = findings.find((one) => one.level === "note");
    expect(note).toMatchObject({ where: "KEY_SECRETS" });
    expect(note?.remedy).toContain("a global key from one region works in the other");
  });
});

describe("deploy:check for a region with an error", () => {
  it.each(FAULTS)("reports one error with its remedy: %s", async (_name, changes, expected) => {
    const report = await checked(files.write(...changes));
    expect(lines(errors(report))).toEqual([expect.stringMatching(expected)]);
    expect(errors(report)[0]?.remedy).not.toBe("");
    expect(isReady(report)).toBe(false);
    expect(wordsOf(report)).toContain("1 error, ");
    expect(wordsOf(report)).toContain("Do not deploy eu yet.");
  });

  it("reports an invalid TOML file and a file that lacks the region", async () => {
    for (const change of [
      ["[env.eu]", "[env.eu"],
      [/env\.eu\b/g, "env.fr"],
    ] as const) {
      const report = await checked(files.write(change));
      expect(lines(errors(report))).toEqual(["wrangler.toml cannot be read for eu"]);
    }
  });
});

describe("deploy:check for a region with a warning", () => {
  it.each([
    ["the sandbox", euVars('SANDBOX = "on"'), /SANDBOX is on/],
    ["a misspelled var", euVars('MARKUP = "5"'), /MARKUP is a var that the Worker doesn't use/],
    ["no version", ['binding = "CF_VERSION"', 'binding = "VERSION"'], /does not bind CF_VERSION/],
    ["no docs", [/\[assets\]\n.*\n.*\n/, ""], /\[assets\] is missing, so there are no documents/],
    ["no peer", [/, PEERS = '[^']*eu?[^']*'/, ""], /PEERS contains no region/],
    [
      "a provider whose secret is not set",
      euVars(provider('"secret":"OWN_KEY",')),
      /PROVIDERS has "own", which is not used, because OWN_KEY is not set/,
    ],
    [
      "a provider over plain HTTP",
      euVars(`${provider("").replace("https://own", "HTTP://own")}, ${model()}`),
      /PROVIDERS has "own" with plain http, so others on the network can read/,
    ],
    [
      "an alias of an unavailable model",
      euVars(`${provider('"secret":"OPENAI_API_KEY",')}, ALIASES = '{"mine":"sandbox/echo"}'`),
      /ALIASES has "mine" for "sandbox\/echo", which is not sold here/,
    ],
    [
      "a model that residency excludes",
      euVars(`${provider("").replace('["eu"]', '["us"]')}, ${model()}`),
      /MODELS has "own\/m", which is not sold/,
    ],
  ] as const)("warns of %s", async (_name, change, expected) => {
    const report = await checked(files.write(change));
    expect(errors(report)).toEqual([]);
    expect(lines(warnings(report))).toEqual([expect.stringMatching(expected)]);
  });

  it("warns about a compatibility date more than a year old", async () => {
    const file = files.write();
    expect(warnings(await checked(file, { days: 365 - 19 }))).toEqual([]);
    const late = await checked(file, { days: 365 - 18 });
    expect(lines(warnings(late))).toEqual([
      "compatibility_date 2026-11-02 is more than a year old",
    ]);
  });

  it("warns if no model can be sold", async () => {
    const report = await checked(files.write(), { names: EU_SECRETS.slice(0, 4) });
    expect(lines(warnings(report))).toEqual([
      "providers have no keys, so only test models are sold",
    ]);
    expect(report.aliases.size).toBe(0);
  });

  it("warns if prices of sold models are more than 60 days old", async () => {
    expect(await prices({ days: -108 })).toEqual([]); // 2026-08-05, the day of the oldest prices
    expect(await prices({ days: 400 })).toEqual([
      expect.stringContaining("openai/gpt-5.4 (openai)"),
    ]);
    expect(await prices({ days: 400 })).toEqual([expect.not.stringContaining("(groq)")]);
    expect(await prices({ names: EU_SECRETS.slice(0, 4), days: 400 })).toEqual([]);
  });
});

describe("deploy:check's checks of the payment settings", () => {
  const BOTH = [...EU_SECRETS, "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRETS"];
  it.each([
    ["both secrets and a tax setting", euVars('STRIPE_TAX = "on"'), BOTH, []],
    ["no tax setting", null, BOTH, ["STRIPE_TAX is not set, so no tax is added to purchases"]],
    [
      "webhook secrets only",
      null,
      [...EU_SECRETS, "STRIPE_WEBHOOK_SECRETS"],
      ["STRIPE_WEBHOOK_SECRETS is set, but STRIPE_SECRET_KEY is not, so no credits are sold"],
    ],
    [
      "a tax setting without payment secrets",
      euVars('STRIPE_TAX = "on"'),
      EU_SECRETS,
      ["STRIPE_TAX is on, but STRIPE_SECRET_KEY is not set, so no credits are sold"],
    ],
  ] as const)("reports the expected findings: %s", async (_what, change, names, expected) => {
    const report = await checked(change === null ? files.write() : files.write(change), { names });
    expect(errors(report)).toEqual([]);
    expect(lines(warnings(report))).toEqual(expected);
  });

  it("reports a Stripe key that lacks a webhook secret or is in the configuration file, without printing the key", async () => {
    const names = [...EU_SECRETS, "STRIPE_SECRET_KEY"];
    const half = await checked(files.write(euVars('STRIPE_TAX = "off"')), { names });
    expect(lines(errors(half))).toEqual([
      "STRIPE_WEBHOOK_SECRETS is not set, but STRIPE_SECRET_KEY is",
    ]);
    const open = await checked(files.write(euVars('STRIPE_SECRET_KEY = "rk_live_0123456789"')));
    expect(lines(errors(open)).join()).toContain(
      "STRIPE_SECRET_KEY is a secret, but is in the vars",
    );
    expect(JSON.stringify(open.findings)).not.toContain("0123456789");
  });

  it("requires a live Stripe key, or a test key if the sandbox is enabled", async () => {
    const modes = [];
    for (const vars of ['STRIPE_TAX = "off"', 'STRIPE_TAX = "off", SANDBOX = "on"']) {
      const { findings } = await checked(files.write(euVars(vars)), { names: BOTH });
      modes.push(findings.find(({ where }) => where === "STRIPE_SECRET_KEY")?.problem);
    }
    expect(modes).toEqual([
      expect.stringContaining("live mode"),
      expect.stringContaining("test mode"),
    ]);
  });
});
