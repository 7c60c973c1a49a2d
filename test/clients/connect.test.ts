import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ORIGIN_PLACEHOLDER, KEY_PLACEHOLDER } from "../../src/console/browser/lib/clients.ts";
import { clientsIn } from "../../scripts/site/clients.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { gateway } from "./gateway.ts";
import { makeEnvironment } from "./python/environment.ts";
import { NEWEST } from "./python/packages.ts";

/**
 * Clients whose instructions are run, with their number. `test/console/clients.pure.test.ts` checks
 * the others.
 */
const RUN: Readonly<Record<string, number>> = {
  curl: 1,
  "OpenAI SDK for JavaScript": 1,
  Responses: 1,
  Codex: 1,
  "OpenAI SDK for Python": 1,
  "OpenAI Agents SDK": 1,
  "AI SDK": 1,
  LangChain: 2,
  "Claude Code": 1,
  "Anthropic's Messages": 2,
  "Frameworks for Python": 2,
};
/** Maximum time for installing a package with pip, on a slow machine. */
const INSTALL_MS = 300_000;

/** A preload for Node that records and rejects every connection to another machine. */
const GUARD = `import net from "node:net";
import { appendFileSync } from "node:fs";
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  const [to = {}] = Array.isArray(args[0]) ? args[0] : args;
  const host = to.host ?? "localhost";
  if (to.path === undefined && !/^(?:localhost|127\\.0\\.0\\.1)$/.test(host)) {
    appendFileSync(process.env.CALLED_OUT, host + "\\n");
    throw new Error("called " + host);
  }
  return connect.apply(this, args);
};
`;

const at = gateway();
const tools = mkdtempSync(path.join(tmpdir(), "turnpike-connect-"));
const calledOut = path.join(tools, "called-out");
const modules = path.join(import.meta.dirname, "node_modules");
const npmPackages = Object.keys(
  (
    JSON.parse(readFileSync(path.join(import.meta.dirname, "package.json"), "utf8")) as {
      dependencies: object;
    }
  ).dependencies,
);
const nameOf = (pin: string): string => /^[\w-]+/.exec(pin)?.[0] ?? pin;
const pipPackages = NEWEST.map(nameOf);

/** Reports whether all packages that a block installs are here. */
function isInstalled(block: string): boolean {
  const [, program, names = ""] = /^(npm|pip) install (?:-g )?(.+)$/m.exec(block) ?? [];
  const all = program === "npm" ? npmPackages : pipPackages;
  const packages = names
    .split(" ")
    .filter(Boolean)
    .map((name) => name.replaceAll('"', ""));
  return packages.every((name) => all.includes(program === "npm" ? name : nameOf(name)));
}

const blocks = clientsIn(
  readFileSync(path.join(import.meta.dirname, "../../docs/clients.md"), "utf8"),
).flatMap(({ name, parts }) =>
  parts
    .filter(({ kind, text }) => kind === "code" && isInstalled(text))
    .map(({ text }, i) => ({ name, number: i + 1, text })),
);

/** The only network access: a proxy that records and rejects every request. */
const proxy = createServer((request, response) => {
  noteCall(request.url);
  response.writeHead(502).end();
});
proxy.on("connect", (request, socket) => {
  noteCall(request.url);
  socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
});
function noteCall(url: string | undefined): void {
  writeFileSync(calledOut, `${url}\n`, { flag: "a" });
}

/** The reason why Python programs can't run, or "". */
let missing = "";
beforeAll(async () => {
  mkdirSync(path.join(tools, "bin"));
  await new Promise<void>((resolve) => {
    proxy.listen(0, "127.0.0.1", resolve);
  });
  writeFileSync(path.join(tools, "guard.mjs"), GUARD);
  // The block's packages are already installed, and become available after its install command.
  writeFileSync(path.join(tools, "bin/npm"), `#!/bin/sh\nln -s ${modules} node_modules\n`, {
    mode: 0o755,
  });
  for (const name of ["claude", "codex"]) {
    symlinkSync(path.join(modules, ".bin", name), path.join(tools, "bin", name));
  }
  missing = await makeEnvironment(path.join(tools, "python"), NEWEST);
  if (missing === "") {
    rmSync(path.join(tools, "python/bin/pip"));
    writeFileSync(path.join(tools, "python/bin/pip"), "#!/bin/sh\n", { mode: 0o755 });
  } else console.warn(`Blocks in Python are skipped: ${missing}`);
}, INSTALL_MS);
afterAll(() => {
  proxy.close();
  removeDirectory(tools);
});

it("the Connect page contains instructions for each installed client", () => {
  const counted = Map.groupBy(blocks, ({ name }) => name);
  const each = [...counted].map(([name, own]) => [name, own.length]);
  expect(Object.fromEntries(each)).toEqual(RUN);
});

it.for(blocks)(
  "instruction $number for $name runs in an empty folder and a new shell, and contacts only the gateway",
  async ({ text }, { skip }) => {
    skip(/^pip /m.test(text) && missing !== "", missing);
    writeFileSync(calledOut, "");
    const before = await at.balance();
    const home = mkdtempSync(path.join(tools, "home-"));
    const printed = await pasted(
      text.replaceAll(ORIGIN_PLACEHOLDER, at.origin).replaceAll(KEY_PLACEHOLDER, at.key),
      home,
    );
    expect(printed).toMatch(/hello/i);
    expect(printed).not.toMatch(/\berror\b/i);
    expect(await at.balance(), printed).toBeLessThan(before);
    expect(readFileSync(calledOut, "utf8"), printed).toBe("");
  },
);

/** Pastes a block into a new shell in an empty folder and home. Returns the output. */
function pasted(block: string, home: string): Promise<string> {
  const nobody = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const bins = [
    path.join(tools, "bin"),
    path.join(tools, "python/bin"),
    path.dirname(process.execPath),
  ];
  const env = {
    PATH: `${bins.join(":")}:/usr/bin:/bin`,
    HOME: home,
    CALLED_OUT: calledOut,
    NODE_OPTIONS: `--import=${path.join(tools, "guard.mjs")}`,
    HTTP_PROXY: nobody,
    HTTPS_PROXY: nobody,
    http_proxy: nobody,
    https_proxy: nobody,
    NO_PROXY: "localhost,127.0.0.1",
    no_proxy: "localhost,127.0.0.1",
  };
  const file = path.join(tools, "block.sh");
  writeFileSync(file, block);
  return new Promise((resolve) => {
    const args = ["--norc", "-eu", file];
    const child = execFile("bash", args, { cwd: home, env, timeout: 100_000 }, (error, out, log) =>
      resolve(error === null ? out : `error: ${error.message}\n${out}${log}`),
    );
    child.stdin?.end();
  });
}
