import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { CLAUDE, authorGateway } from "./author-gateway.ts";

// Claude Code's small additional requests also have tools, which an agent model would call.
const at = await authorGateway({ smart: "sandbox/echo" }, "sandbox/echo");

/** One line of `claude -p --output-format stream-json`. */
type Line = {
  readonly type: string;
  readonly result?: string;
  readonly is_error?: boolean;
  readonly message?: { readonly content: unknown };
};
type Turn = { readonly lines: readonly Line[]; readonly log: string };

/**
 * Runs `claude -p` with a prompt in a new or given home, without network access except to the
 * gateway.
 */
function claude(
  prompt: string,
  { key = at.key, model = "smart", home: givenHome = "", more = [] as readonly string[] } = {},
): Promise<Turn> {
  const home = givenHome === "" ? mkdtempSync(join(tmpdir(), "claude-")) : givenHome;
  const name = "@anthropic-ai/claude-code/package.json";
  const cli = join(dirname(createRequire(import.meta.url).resolve(name)), "cli-wrapper.cjs");
  const output = ["--output-format", "stream-json", "--verbose"];
  const args = [cli, "-p", prompt, ...output, "--allowedTools", "Bash", ...more];
  const env = {
    PATH: process.env["PATH"],
    HOME: home,
    ANTHROPIC_BASE_URL: at.origin,
    ANTHROPIC_AUTH_TOKEN: key,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: "smart",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      args,
      { env, cwd: home, timeout: 100_000, maxBuffer: 2 ** 26 },
      (_, stdout, log) => {
        if (givenHome === "") rmSync(home, { recursive: true, force: true });
        const json = stdout.split("\n").filter((line) => line.startsWith("{"));
        resolve({ lines: json.map((line) => JSON.parse(line) as Line), log });
      },
    );
    child.stdin?.end();
  });
}

const resultOf = ({ lines }: Turn) => lines.find(({ type }) => type === "result");

it("claude -p gets a response, which is charged", async () => {
  const before = await at.balance();
  const turn = await claude("Say hello to the gateway");
  expect([resultOf(turn), turn.log]).toMatchObject([
    { is_error: false, result: expect.stringContaining("Say hello to the gateway") as string },
    expect.anything(),
  ]);
  expect(await at.balance()).toBeLessThan(before);
});

it("claude -p completes a task with a shell call", async () => {
  const order = JSON.stringify({ command: "echo turnpike-$((40+2))", description: "count" });
  const turn = await claude(`call Bash ${order}`);
  const userMessages = turn.lines
    .filter(({ type }) => type === "user")
    .map(({ message }) => message);
  expect([userMessages, turn.log]).toMatchObject([
    [{ content: [{ type: "tool_result", content: "turnpike-42", is_error: false }] }],
    expect.anything(),
  ]);
  expect(resultOf(turn)?.result).toBe("Bash returned: turnpike-42");
});

it("claude -p stops and prints the reason if no credits are left", async () => {
  const turn = await claude("Say hello", { key: await at.keyOf({ credits: 0 }) });
  expect([resultOf(turn), turn.log]).toMatchObject([
    { is_error: true, result: expect.stringMatching(/credit/i) as string },
    expect.anything(),
  ]);
});

it("claude -p completes a conversation of three messages with shell commands, for a Claude model at Anthropic", async () => {
  const home = mkdtempSync(join(tmpdir(), "claude-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const order = (word: string) =>
    `call Bash ${JSON.stringify({ command: `echo ${word}-$((40+2))`, description: "count" })}`;
  const texts: unknown[] = [];
  for (const prompt of [
    `${order("one")} and then ${order("two")}`,
    order("three"),
    order("four"),
  ]) {
    const more = texts.length === 0 ? [] : ["--continue"];
    const turn = await claude(prompt, { model: CLAUDE, home, more });
    texts.push(resultOf(turn)?.result ?? turn.log);
  }
  expect(texts).toEqual(["two", "three", "four"].map((word) => `Bash returned: ${word}-42`));
});
