import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CheckOptions } from "../../scripts/deploy/check.ts";
import { DeployFiles, EU_SECRETS, euVars } from "./support/deploy-file.ts";
import { CANARY, changed, checked, run } from "./support/deploy-run.ts";
import { ADMIN_TOKEN, startPersistentRegion } from "./support/two-regions.ts";
import type { PersistentRegion } from "./support/two-regions.ts";

const REQUIRED = EU_SECRETS.slice(0, 4);
const files = new DeployFiles();
afterAll(() => files.remove());

describe("the command deploy:check --live", () => {
  let kept: PersistentRegion;
  let file: string;
  beforeAll(async () => {
    kept = await startPersistentRegion();
    file = files.write(euVars('SANDBOX = "on"'));
  });
  afterAll(() => kept.stop());
  const live = (names: readonly string[], more: Partial<CheckOptions> = {}) => {
    const running = { url: kept.region().adminUrl, token: ADMIN_TOKEN };
    return checked(file, { names: new Set(names), running, ...more });
  };

  it("reports nothing if the aliases stay the same", async () => {
    const report = await live(REQUIRED);
    expect(report.ready).toBe(true);
    expect(changed(report)).toEqual([]);
    expect(report.aliases["embeddings/cheapest"]).toBe("sandbox/embed");
  });

  it("reports a different embeddings model as an error until the operator accepts the model", async () => {
    const change =
      "embeddings/cheapest means sandbox/embed now and would mean openai/text-embedding-3-small after the deploy";
    const refused = await live(EU_SECRETS);
    expect(refused.ready).toBe(false);
    expect(changed(refused)).toContain(`error ${change}`);
    expect(changed(refused)).toHaveLength(4);
    const accepted = await live(EU_SECRETS, { isAccepted: true });
    expect(accepted.ready).toBe(true);
    expect(changed(accepted)).toContain(`warning ${change}`);
  });

  it("accepts the address as an argument and the token from the environment", async () => {
    const token = { TURNPIKE_ADMIN_TOKEN: ADMIN_TOKEN };
    const args = [
      "--env",
      "eu",
      "--config",
      file,
      "--set",
      EU_SECRETS.join(","),
      "--live",
      kept.region().url,
    ];
    expect(await run(args, token)).toMatchObject({ code: 1 });
    expect(await run([...args, "--accept-alias-change"], token)).toMatchObject({ code: 0 });
  });

  it("reports an error without a comparison for a wrong token, no response or another region", async () => {
    for (const [more, problem] of [
      [{ running: { url: kept.region().adminUrl, token: CANARY } }, "responded with 401"],
      [{ running: { url: "http://127.0.0.1:9/admin/v1", token: CANARY } }, "did not respond"],
      [{ env: "us" }, "is the address of eu, not of us"],
    ] as const) {
      const report = await live(EU_SECRETS, more);
      expect(changed(report)).toEqual([]);
      const found = report.findings.find(({ where }) => where === "--live");
      expect(found).toMatchObject({ level: "error", problem: expect.stringContaining(problem) });
    }
  });

  it("skips the comparison if the configuration is invalid", async () => {
    const running = { url: kept.region().adminUrl, token: ADMIN_TOKEN };
    const wrong = files.write(euVars('MARKUP_PERCENT = "-1"'));
    const report = await checked(wrong, { names: new Set(EU_SECRETS), running });
    expect(report.findings.filter(({ level }) => level === "error")).toHaveLength(1);
    expect(changed(report)).toEqual([]);
  });
});
