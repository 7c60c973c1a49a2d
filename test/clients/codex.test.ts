import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { gateway } from "./gateway.ts";

const at = gateway();

/** One line of `codex exec --json`. */
type Line = {
  readonly type: string;
  readonly message?: string;
  readonly item?: Readonly<Record<string, unknown>>;
};
type Turn = { readonly lines: readonly Line[]; readonly log: string; readonly took: number };

/** What `codex exec` does with a prompt, in a home of its own and with no network but ours. */
function codex(prompt: string, key = at.key): Promise<Turn> {
  const home = mkdtempSync(join(tmpdir(), "codex-"));
  const settings = `
model = "sandbox/echo"
model_provider = "turnpike"
[model_providers.turnpike]
name = "Turnpike"
base_url = "${at.baseUrl}"
env_key = "TURNPIKE_KEY"
wire_api = "responses"
`;
  writeFileSync(join(home, "config.toml"), settings);
  const cli = createRequire(import.meta.url).resolve("@openai/codex/bin/codex.js");
  const open = "--dangerously-bypass-approvals-and-sandbox"; // its own does not work in every container
  const args = [cli, "exec", "--json", "--skip-git-repo-check", open, prompt];
  const env = { PATH: process.env["PATH"], HOME: home, CODEX_HOME: home, TURNPIKE_KEY: key };
  const options = { env, cwd: home, timeout: 90_000 };
  return new Promise((resolve) => {
    const began = performance.now();
    const child = execFile(process.execPath, args, options, (_, said, log) => {
      rmSync(home, { recursive: true, force: true });
      const json = said.split("\n").filter((line) => line.startsWith("{"));
      const lines = json.map((line) => JSON.parse(line) as Line);
      resolve({ lines, log, took: performance.now() - began });
    });
    child.stdin?.end();
  });
}

const textsOf = ({ lines }: Turn): unknown[] =>
  lines.flatMap(({ item }) => (item?.["type"] === "agent_message" ? [item["text"]] : []));

it("codex exec: an answer, and it is paid for", async () => {
  const before = await at.balance();
  const turn = await codex("Say hello to the gateway");
  expect([textsOf(turn), turn.log]).toEqual([["Say hello to the gateway"], expect.anything()]);
  expect(await at.balance()).toBeLessThan(before);
});

it("codex exec: a whole turn with one call of its shell", async () => {
  const order = JSON.stringify({ cmd: "echo turnpike-$((40+2))" });
  const turn = await codex(`call exec_command ${order}`);
  const ran = turn.lines.flatMap(({ type, item }) =>
    type === "item.completed" && item?.["type"] === "command_execution" ? [item] : [],
  );
  expect([ran, turn.log]).toMatchObject([
    [{ status: "completed", exit_code: 0, aggregated_output: "turnpike-42\n" }],
    expect.anything(),
  ]);
  expect(textsOf(turn)).toEqual([expect.stringMatching(/^exec_command returned: .*turnpike-42/s)]);
  expect(turn.lines.at(-1)?.type).toBe("turn.completed");
});

it("codex exec: without credits it stops at once and says why", async () => {
  const turn = await codex("Say hello", await at.keyOf({ credits: 0 }));
  const told = turn.lines.filter(({ type }) => type === "error").map(({ message }) => message);
  expect([told, turn.log]).toEqual([[expect.stringMatching(/quota/i)], expect.anything()]);
  expect(turn.lines.at(-1)?.type).toBe("turn.failed");
});
