import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { ORIGIN, YOUR_KEY } from "../../console/lib/clients.ts";
import { clientsIn } from "../../scripts/site/clients.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { gateway } from "./gateway.ts";

/** Whose SDK this package has; the others' blocks are read by `test/console/clients.pure.test.ts`. */
const RUN = [
  "OpenAI SDK for JavaScript",
  "Responses",
  "OpenAI Agents SDK",
  "LangChain",
  "Anthropic's Messages",
];
/** Every connection of a program of Node that leads off this machine is written down and refused. */
const GUARD = `import net from "node:net";
import { appendFileSync } from "node:fs";
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...given) {
  const [to = {}] = Array.isArray(given[0]) ? given[0] : given;
  const host = to.host ?? "localhost";
  if (to.path === undefined && !/^(?:localhost|127\\.0\\.0\\.1)$/.test(host)) {
    appendFileSync(process.env.CALLED_OUT, host + "\\n");
    throw new Error("called " + host);
  }
  return connect.apply(this, given);
};
`;

const at = gateway({ ALIASES: JSON.stringify({ smart: "sandbox/echo" }) });
// where its packages are found
const directory = mkdtempSync(path.join(import.meta.dirname, "connect-"));
const calledOut = path.join(directory, "called-out");
afterAll(() => removeDirectory(directory));

const blocks = clientsIn(
  readFileSync(path.join(import.meta.dirname, "../../docs/clients.md"), "utf8"),
)
  .filter(({ name }) => RUN.includes(name))
  .flatMap(({ name, parts }) =>
    parts.filter(({ kind }) => kind === "code").map(({ text }) => ({ name, text })),
  )
  .filter(({ text }) => /^export KEY=|^import .* from "|^import \{\n/.test(text));

it("there is a block of each", () => {
  expect(new Set(blocks.map(({ name }) => name))).toEqual(new Set(RUN));
});

it.each(blocks)(
  "in an empty shell the block of $name is answered here, and asks nobody else",
  async ({ text }) => {
    writeFileSync(calledOut, "");
    writeFileSync(path.join(directory, "guard.mjs"), GUARD);
    const own = text.replaceAll(ORIGIN, at.origin).replaceAll(YOUR_KEY, at.key);
    const isShell = own.startsWith("export KEY=");
    const file = path.join(directory, isShell ? "block.sh" : "block.mjs");
    writeFileSync(file, own);
    const env = {
      PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: directory,
      CALLED_OUT: calledOut,
      NODE_OPTIONS: `--import=${path.join(directory, "guard.mjs")}`,
    };
    const printed = await new Promise<string>((resolve) => {
      const [program, args] = isShell ? ["bash", ["-eu", file]] : [process.execPath, [file]];
      execFile(
        String(program),
        args as string[],
        { cwd: directory, env },
        (error, stdout, stderr) =>
          resolve(error === null ? stdout : `${error.message}\n${stdout}${stderr}`),
      );
    });
    expect(printed).toContain("Hello");
    expect(printed).not.toContain("rror");
    expect(readFileSync(calledOut, "utf8")).toBe("");
  },
);
