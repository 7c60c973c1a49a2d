import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { DeployFiles, EU_SECRETS, euVars } from "./support/deploy-file.ts";
import { readMigrations } from "../../scripts/migrations.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";
import { CANARY, checked, run, unset } from "./support/deploy-run.ts";
import type { DeployReport } from "./support/deploy-run.ts";
import { startProgram } from "./support/program.ts";

const REQUIRED = EU_SECRETS.slice(0, 4);
const NAMES = EU_SECRETS.join(",");
/** Secrets that could enable a built-in provider. Workers AI has a binding instead. */
const PROVIDER_SECRETS = [
  ...new Set(
    BUILT_IN_PROVIDERS.flatMap(({ variables }) => variables).filter((name) => name !== "AI"),
  ),
];
const files = new DeployFiles();
afterAll(() => files.remove());

/** Checks a ready region with this shell script as `wrangler`. */
async function reportWith(script: string): Promise<DeployReport> {
  const bin = mkdtempSync(path.join(files.directory, "bin-"));
  const file = path.join(bin, "wrangler");
  writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  vi.stubEnv("PATH", `${bin}${path.delimiter}${process.env["PATH"]}`);
  try {
    return await checked(files.write());
  } finally {
    vi.unstubAllEnvs();
  }
}

/** Returns secrets as wrangler lists them. */
function listed(names: readonly string[]): string {
  return JSON.stringify(names.map((name) => ({ name, type: "secret_text" })));
}

/** Returns the findings about migrations for this output of wrangler. */
async function saidOfMigrations(answer: string) {
  const { findings, ready } = await reportWith(
    `case "$1" in d1) echo "$@" > ${path.join(files.directory, "d1")}; ${answer};; *) echo '${listed(EU_SECRETS)}';; esac`,
  );
  return { ready, found: findings.filter(({ where }) => where === "migrations") };
}

/** Returns a script that prints these applied migrations. */
function applied(names: readonly string[]): string {
  return `echo '${JSON.stringify([{ results: names.map((name) => ({ name })), success: true }])}'`;
}

describe("the exit code of deploy:check", () => {
  it("equals 0 for a ready region, with both text and JSON output", async () => {
    const file = files.write();
    const words = await run(["--env", "eu", "--config", file, "--set", NAMES]);
    expect(words).toMatchObject({ code: 0 });
    expect(words.output).toMatch(/embeddings\/cheapest +openai\/text-embedding-3-small\n/);
    expect(words.output).toMatch(
      /\n0 errors, \d warnings?\. Next: npx wrangler deploy --env eu\n$/,
    );
    const json = await run(["--env", "eu", "--json", "--config", file, "--set", NAMES]);
    expect(json.code).toBe(0);
    expect(JSON.parse(json.output)).toMatchObject({
      ready: true,
      assumed: [],
      aliases: { "embeddings/cheapest": "openai/text-embedding-3-small" },
    });
  });

  it("equals 0 for a US region, whose secrets have different names", async () => {
    const names = "KEY_SECRETS,ADMIN_TOKEN,PEER_OUT_EU,PEER_IN_EU,OPENAI_API_KEY";
    const args = ["--env", "us", "--config", files.write(), "--set", names];
    expect(await run(args)).toMatchObject({ code: 0 });
  });

  it("equals 1 for the repository's wrangler.toml, and the output lists the values to fill in", async () => {
    const args = ["--env", "eu", "--config", "wrangler.toml", "--set", NAMES];
    const program = startProgram(["scripts/deploy-check.ts", ...args]);
    expect(await program.ended).toBe(1);
    const output = program.output();
    for (const what of ["database_id is a placeholder", "routes contain", "PEERS contains"]) {
      expect(output).toContain(what);
    }
    expect(output).toContain("3 errors, ");
  });

  it.each([
    ["no region", []],
    ["an unknown region", ["--env", "fr"]],
    ["an unknown option", ["--env", "eu", "--force"]],
    ["values instead of names", ["--env", "eu", "--set", `KEY_SECRETS=${CANARY}`]],
    ["--live without its token", ["--env", "eu", "--live", "https://eu.gateway.test"]],
    ["--live over plain HTTP", ["--env", "eu", "--live", "http://eu.gateway.test"]],
    ["a secret as an argument", ["--env", "eu", CANARY]],
  ])("equals 2 for %s", async (_name, args) => {
    expect(await run(args)).toMatchObject({ code: 2 });
  });

  it("equals 0 for --help, which lists the exit codes", async () => {
    const { code, output } = await run(["--help"]);
    expect(code).toBe(0);
    expect(output).toContain(
      "Exits with 0 if the region is ready, 1 if something must be fixed, or 2",
    );
  });
});

describe("the list of secrets in deploy:check", () => {
  it("contains only the secrets that wrangler lists for the region's environment and configuration", async () => {
    const argsFile = path.join(files.directory, "given");
    const report = await reportWith(`echo "$@" >> ${argsFile}; echo '${listed(EU_SECRETS)}'`);
    expect(report).toMatchObject({ ready: true, assumed: [] });
    expect(readFileSync(argsFile, "utf8")).toMatch(
      /^secret list --env eu --format json --config \S+wrangler-\d+\.toml\n/,
    );
  });

  it("causes an error for each missing secret, with the command that sets the secret", async () => {
    const report = await reportWith(`echo '${listed(["ADMIN_TOKEN", "PEER_IN_US_NEXT"])}'`);
    expect(report.ready).toBe(false);
    const missing = unset(report);
    expect(missing.map(({ where }) => where)).toEqual(["KEY_SECRETS", "PEER_OUT_US", "PEER_IN_US"]);
    for (const { level, where, remedy } of missing) {
      expect(level).toBe("error");
      expect(remedy).toContain(`npx wrangler secret put ${where} --env eu`);
    }
    expect(missing[1]?.remedy).toContain("the value of PEER_IN_EU in us");
    expect(report.findings).toContainEqual(
      expect.objectContaining({ level: "note", where: "PEER_IN_US_NEXT" }),
    );
  });

  it("contains nothing for a Worker that doesn't exist yet", async () => {
    const report = await reportWith(`echo 'Worker "turnpike-eu" (env: eu) not found.' >&2; exit 1`);
    expect(unset(report).map(({ where }) => where)).toEqual(REQUIRED);
  });

  it.each([
    ["fails", `echo ${CANARY}; echo ${CANARY} >&2; exit 1`],
    ["prints unexpected text", `echo 'You are logged in: ${CANARY}'`],
    ["lists no names", `echo '[{"value":"${CANARY}"}]'`],
    ["is killed", "kill -9 $$"],
  ])("becomes a warning with a remedy and an assumption if wrangler %s", async (_name, script) => {
    const report = await reportWith(script);
    expect(report).toMatchObject({ ready: true, assumed: PROVIDER_SECRETS });
    const unknown = report.findings.find(({ where }) => where === "secrets");
    expect(unknown).toMatchObject({ level: "warning" });
    for (const name of ["npx wrangler secret list --env eu", ...REQUIRED]) {
      expect(unknown?.remedy).toContain(name);
    }
  });

  it("stays unknown if nobody is logged in to Cloudflare, and no browser opens for a login", async () => {
    const home = { HOME: files.directory, XDG_CONFIG_HOME: files.directory };
    const { code, output } = await run(["--env", "eu", "--config", files.write()], home);
    expect(code).toBe(0);
    expect(output).toContain(
      "secrets could not be listed, because Cloudflare could not be called.",
    );
    expect(output).toContain(
      `(This assumes that these secrets are set: ${PROVIDER_SECRETS.join(", ")})`,
    );
  });
});

describe("the list of applied migrations in deploy:check", () => {
  const own = readMigrations().map(({ name }) => name);

  it("causes no finding if the database has all migrations", async () => {
    expect(await saidOfMigrations(applied(own))).toEqual({ ready: true, found: [] });
    expect(readFileSync(path.join(files.directory, "d1"), "utf8")).toMatch(
      /^d1 execute DB --env eu --remote --json --config \S+ --command SELECT name FROM d1_migrations/,
    );
  });

  it.each([
    ["a missing migration", applied(own.slice(1))],
    ["a new database", "echo 'no such table: d1_migrations' >&2; exit 1"],
  ])(
    "causes an error with the command that applies the missing migrations: %s",
    async (_name, answer) => {
      const { ready, found } = await saidOfMigrations(answer);
      expect(ready).toBe(false);
      expect(found[0]).toMatchObject({ level: "error", problem: `the database lacks ${own[0]}` });
      expect(found[0]?.remedy).toContain("npx wrangler d1 migrations apply turnpike-eu --env eu");
    },
  );

  it("causes a note if the database has a newer release's migration that this release supports", async () => {
    const { ready, found } = await saidOfMigrations(applied([...own, "9999_newer.sql"]));
    expect(ready).toBe(true);
    expect(found).toMatchObject([{ level: "note" }]);
    expect(found[0]?.problem).toContain("9999_newer.sql");
  });

  it.each([
    ["is unavailable", "exit 1"],
    ["returns an unexpected response", "echo '{}'"],
  ])("becomes a warning with a remedy if the database %s", async (_name, answer) => {
    const { ready, found } = await saidOfMigrations(answer);
    expect(ready).toBe(true);
    expect(found).toMatchObject([{ level: "warning" }]);
    expect(found[0]?.remedy).toContain("npx wrangler d1 migrations list turnpike-eu --env eu");
  });
});

describe("a secret's value in a checked configuration", () => {
  it.each([
    ["among the vars", euVars(`PEER_IN_US_NEXT = "${CANARY}"`)],
    ["under its own name", euVars(`MY_KEY = "${CANARY}"`)],
    [
      "instead of its name",
      euVars(
        `PROVIDERS = '[{"id":"a","base_url":"https://a.test","secret":"${CANARY}","regions":["eu"]}]'`,
      ),
    ],
    ["in an address", ["https://us.gateway.test", `https://user:${CANARY}@us.gateway.test`]],
    ["on a line that isn't TOML", ["[env.eu]", `ADMIN_TOKEN = "${CANARY}\n[env.eu]`]],
    ["in invalid JSON", euVars(`MODELS = '[{"key":"${CANARY}'`)],
  ] as const)("never appears in a finding: %s", async (_name, change) => {
    const report = await checked(files.write(change), { names: new Set(EU_SECRETS) });
    expect(report.findings[0]?.level).not.toBe("note");
  });
});
