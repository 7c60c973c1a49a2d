import { afterAll, expect, it } from "vitest";
import { DeployFiles, EU_SECRETS } from "./support/deploy-file.ts";
import { checked } from "./support/deploy-run.ts";

const files = new DeployFiles();
afterAll(() => files.remove());

const NAMES = new Set(EU_SECRETS);
const CALM = {
  "/zones?name=gateway.test": [{ id: "z1" }],
  "/zones/z1/settings/browser_check": { value: "off" },
  "/zones/z1/settings/security_level": { value: "medium" },
  "/zones/z1/bot_management": { fight_mode: false },
};

/**
 * Returns the findings for the zone of eu.gateway.test, given Cloudflare's responses. Null means no
 * permission.
 */
async function zone(answers: Readonly<Record<string, unknown>> | null) {
  const zones = answers === null ? null : (path: string) => Promise.resolve(answers[path] ?? null);
  const { findings } = await checked(files.write(), { names: NAMES, zones });
  return findings
    .filter(({ where }) => where.startsWith("zone"))
    .map(({ level, problem }) => `${level} ${problem}`);
}

it("deploy:check reports nothing for a Cloudflare zone without challenges", async () => {
  expect(await zone(CALM)).toEqual([]);
});

it.each([
  ["/zones/z1/settings/browser_check", { value: "on" }, /^warning has Browser Integrity Check on/],
  ["/zones/z1/settings/security_level", { value: "under_attack" }, /^error is in Under Attack/],
  ["/zones/z1/bot_management", { fight_mode: true }, /^error has Bot Fight Mode on/],
])("deploy:check reports %s: %j", async (path, value, words) => {
  const findings = await zone({ ...CALM, [path]: value });
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatch(words);
});

it("deploy:check reports the zone settings that the token can't read", async () => {
  expect(await zone({ ...CALM, "/zones/z1/bot_management": null })).toEqual([
    expect.stringMatching(/^note of eu\.gateway\.test could not be read \(Bot Fight Mode:/),
  ]);
  expect(await zone({})).toEqual([expect.stringMatching(/^note .*can't read the zone/)]);
  expect(await zone(null)).toEqual([expect.stringMatching(/^note .*CLOUDFLARE_API_TOKEN/)]);
});
