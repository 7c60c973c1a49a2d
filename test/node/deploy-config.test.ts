import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { experimental_getWranglerCommands, unstable_readConfig } from "wrangler";
import { MERGED_FILE, OWN_FILE, SHARED_FILE } from "../../scripts/deploy/files.ts";
import { isFresh, mergedText, mergeTables } from "../../scripts/deploy/own-config.ts";
import { PAIR } from "../../scripts/region-names.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { blocksOf, pagePaths, readPage, ROOT } from "../documents/pages.ts";
import { askWrangler } from "../../scripts/deploy/ask-wrangler.ts";
import { serveEmptyAccount } from "./support/cloudflare.ts";
import { DeployFiles, EU_SECRETS, euVars } from "./support/deploy-file.ts";
import { checked } from "./support/deploy-run.ts";
import { startProgram } from "./support/program.ts";

const folder = mkdtempSync(path.join(tmpdir(), "turnpike-own-"));
const files = new DeployFiles();
afterAll(() => {
  removeDirectory(folder);
  files.remove();
});
const EU_ID = "3f2a8c1e-5b7d-4e90-a1c4-6d8e0f2b4a71";
const US_ID = "9c1d7e5b-2f4a-4b68-8e30-1a5c7d9f3b26";
const at = (name: string): string => path.join(folder, name);
const program = (...args: string[]): Promise<number | null> =>
  startProgram(["scripts/deploy-config.ts", "--folder", folder, ...args]).ended;
const stale = async (): Promise<string[]> => {
  const { findings } = await checked(at(MERGED_FILE), { names: new Set(EU_SECRETS) });
  return findings.filter(({ level }) => level === "error").map(({ where }) => where);
};

/** Returns the guide's example with its placeholders filled in. */
function ownText(): string {
  const block = blocksOf(readPage("docs/deploy.md")).find(({ info }) => info === "toml");
  const ids = ["0a1b2c3d4e5f60718293a4b5c6d7e8f9", EU_ID, US_ID];
  return (block?.text ?? "")
    .replaceAll("turnpike.example.com", "gateway.test")
    .replaceAll(/<[^>]+>/g, () => ids.shift() ?? "one more");
}

it("deploy:config writes a deployable wrangler.json from the repository's file and the deploy guide's values", async () => {
  writeFileSync(at(SHARED_FILE), readPage("wrangler.toml"));
  expect([mergedText(folder), isFresh(folder)]).toEqual([null, true]);
  writeFileSync(at(OWN_FILE), ownText());
  expect(isFresh(folder)).toBe(false);
  expect(await program()).toBe(0);
  for (const region of PAIR) {
    const merged = unstable_readConfig({ config: at(MERGED_FILE), env: region });
    const shared = unstable_readConfig({ config: at(SHARED_FILE), env: region });
    const peer = region === "eu" ? "us" : "eu";
    const [database] = shared.d1_databases;
    const own = {
      account_id: "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
      routes: [{ pattern: `${region}.gateway.test`, custom_domain: true }],
      vars: {
        ...shared.vars,
        PEERS: JSON.stringify([{ region: peer, url: `https://${peer}.gateway.test` }]),
      },
      d1_databases: [{ ...database, database_id: region === "eu" ? EU_ID : US_ID }],
      secrets: {
        required: ["KEY_SECRETS", "ADMIN_TOKEN", ...linkSecrets(peer)],
      },
      build: {
        ...shared.build,
        command: expect.stringMatching(/ --fresh && .*scripts\/site\.ts$/),
      },
    };
    const paths = { configPath: at(MERGED_FILE), userConfigPath: at(MERGED_FILE) };
    expect(merged).toEqual({ ...shared, ...own, ...paths });
  }
  expect(await stale()).toEqual([]);
});

function linkSecrets(peer: string): string[] {
  return [`PEER_OUT_${peer.toUpperCase()}`, `PEER_IN_${peer.toUpperCase()}`];
}

/** Returns the page's example for a deployment of one region with a staging environment. */
function oneRegionText(): string {
  const blocks = blocksOf(readPage("docs/one-region.md")).filter(({ info }) => info === "toml");
  const ids = ["0a1b2c3d4e5f60718293a4b5c6d7e8f9", EU_ID, US_ID];
  const text = blocks.map((block) => block.text).join("\n");
  return text
    .replaceAll("turnpike.example.com", "gateway.test")
    .replaceAll(/<[^>]+>/g, () => ids.shift() ?? "one more");
}

it("deploy:check accepts a single region and its staging environment without link secrets", async () => {
  const place = mkdtempSync(path.join(tmpdir(), "turnpike-one-"));
  writeFileSync(path.join(place, SHARED_FILE), readPage("wrangler.toml"));
  writeFileSync(path.join(place, OWN_FILE), oneRegionText());
  const merged = path.join(place, MERGED_FILE);
  writeFileSync(merged, mergedText(place) ?? "");
  const names = new Set(["KEY_SECRETS", "ADMIN_TOKEN", "OPENAI_API_KEY"]);
  for (const env of ["eu", "eu-staging"]) {
    const { findings } = await checked(merged, { env, names });
    expect(findings.filter(({ level }) => level === "error")).toEqual([]);
    const config = unstable_readConfig({ config: merged, env });
    expect(config.secrets).toEqual({ required: ["KEY_SECRETS", "ADMIN_TOKEN"] });
    expect(config.name).toBe(`turnpike-${env}`);
    expect(config.durable_objects.bindings).toHaveLength(8);
  }
  // Both environments with the same database are rejected.
  writeFileSync(path.join(place, OWN_FILE), oneRegionText().replace(US_ID, EU_ID));
  writeFileSync(merged, mergedText(place) ?? "");
  const { findings } = await checked(merged, { env: "eu-staging", names });
  expect(findings.filter(({ level }) => level === "error")).toMatchObject([
    { problem: "is also the database of eu" },
  ]);
  removeDirectory(place);
});

it("wrangler accepts the configuration of a single region without link secrets", async () => {
  const place = mkdtempSync(path.join(tmpdir(), "turnpike-wrangler-"));
  writeFileSync(path.join(place, SHARED_FILE), readPage("wrangler.toml"));
  writeFileSync(path.join(place, OWN_FILE), oneRegionText());
  const merged = JSON.parse((mergedText(place) ?? "").replace(/^\/\/.*\n/, "")) as object;
  const file = path.join(place, MERGED_FILE);
  writeFileSync(path.join(place, "index.js"), "export default {}");
  const unbuilt = { ...merged, build: {}, assets: undefined, main: "index.js", minify: false };
  writeFileSync(file, JSON.stringify(unbuilt));
  const cloudflare = await serveEmptyAccount();
  const { out, err } = await askWrangler(
    ["deploy", "--env", "eu", "--no-bundle", "--config", file],
    { CLOUDFLARE_API_BASE_URL: cloudflare.url, CLOUDFLARE_API_TOKEN: "token" },
  );
  cloudflare.close();
  const [, missing] = /required secrets have not been set: ([A-Z_, ]*)/.exec(out + err) ?? [];
  expect(missing, out + err).toBe("KEY_SECRETS, ADMIN_TOKEN");
  removeDirectory(place);
});

it("deploy:check and builds reject an outdated wrangler.json until it is rebuilt", async () => {
  writeFileSync(
    at(SHARED_FILE),
    readPage("wrangler.toml").replace("max_delay = 300", "max_delay = 60"),
  );
  expect(await stale()).toEqual([MERGED_FILE]);
  expect(await program("--fresh")).toBe(1);
  writeFileSync(at(MERGED_FILE), mergedText(folder) ?? "");
  expect(await stale()).toEqual([]);
});

it("deploy:config merges values into a configuration, keeps all others, and changes nothing when repeated", () => {
  const leaf = fc.oneof(fc.string(), fc.integer(), fc.array(fc.string()));
  const binding = fc.record({ binding: fc.constantFrom("A", "B", "C"), id: fc.string() });
  const bindings = fc.uniqueArray(binding, { selector: (one) => one.binding });
  const inner = fc.dictionary(fc.constantFrom("x", "y", "z"), fc.oneof(leaf, bindings));
  const table = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.oneof(leaf, inner, bindings));
  fc.assert(
    fc.property(table, table, (shared, own) => {
      const merged = mergeTables(shared, own);
      expect(mergeTables(merged, own)).toEqual(merged);
      expect(mergeTables(shared, {})).toEqual(shared);
      const keys = Object.keys({ ...shared, ...own });
      expect(Object.keys(merged).toSorted()).toEqual(keys.toSorted());
      for (const key of keys.filter((one) => !(one in own))) expect(merged[key]).toBe(shared[key]);
    }),
  );
});

it("deploy:check warns if a secret enables the sandbox, and prints the command to disable it", async () => {
  const names = new Set([...EU_SECRETS, "SANDBOX"]);
  const { ready, findings } = await checked(files.write(), { names });
  const found = findings.filter(({ where }) => where === "SANDBOX");
  expect([ready, found.map(({ level }) => level)]).toEqual([true, ["warning"]]);
  expect(found[0]?.remedy).toContain("npx wrangler secret delete SANDBOX --env eu");
  const asVar = await checked(files.write(euVars('SANDBOX = "on"')), {
    names: new Set(EU_SECRETS),
  });
  expect(asVar.findings.map(({ where }) => where)).toContain("SANDBOX");
});

type Node = {
  readonly definition?: { readonly type: string; readonly args?: object } | undefined;
  readonly subtree: ReadonlyMap<string, Node>;
};

/** Returns unknown commands and options in a line that calls wrangler. */
function wrongIn(line: string): string[] {
  const { registry, globalFlags } = experimental_getWranglerCommands();
  const words = line.split(/\s+/);
  let node: Node | undefined = registry;
  for (const word of words) node = node?.subtree.get(word) ?? node;
  if (node?.definition?.type !== "command") return [`no command: ${line}`];
  const flags = new Set([
    ...Object.keys(node.definition.args ?? {}),
    ...Object.keys(globalFlags),
    "yes",
  ]);
  return words
    .filter((word) => word.startsWith("--") && !flags.has(word.slice(2)))
    .map((word) => `${word} of: ${line}`);
}

it("every wrangler command and option that deploy:check prints exists", () => {
  const scripts = readdirSync(path.join(ROOT, "scripts"), { recursive: true, encoding: "utf8" });
  const sources = [
    ...pagePaths(),
    "wrangler.toml",
    ...scripts.filter((name) => name.endsWith(".ts")).map((name) => `scripts/${name}`),
  ];
  const lines = sources.flatMap((file) =>
    [...readFileSync(path.join(ROOT, file), "utf8").matchAll(/npx wrangler ([^`;#"')|:]+)/g)].map(
      ([, line = ""]) => line.split("\n")[0]?.trim() ?? "",
    ),
  );
  expect(lines.length).toBeGreaterThan(40);
  expect([...new Set(lines)].flatMap(wrongIn)).toEqual([]);
  expect(wrongIn("d1 migration apply turnpike-eu")).toHaveLength(1);
  expect(wrongIn("secret put NAME --envs eu")).toEqual(["--envs of: secret put NAME --envs eu"]);
});
