import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Gateway } from "./gateway.ts";

/** One line of `codex exec --json`. */
type Line = {
  readonly type: string;
  readonly message?: string;
  readonly item?: Readonly<Record<string, unknown>>;
};
export type Turn = { readonly lines: readonly Line[]; readonly log: string; readonly took: number };

export type CodexOptions = {
  readonly prompt: string;
  readonly key?: string;
  readonly model?: string;
  /** Returns additional lines of config.toml. */
  readonly settings?: (home: string) => string;
};

/** Runs `codex exec` with a prompt in a new home, without network access except to the gateway. */
export function codex(
  at: Gateway,
  { prompt, key = at.key, model = "sandbox/echo", settings: more }: CodexOptions,
): Promise<Turn> {
  const home = mkdtempSync(join(tmpdir(), "codex-"));
  const settings = `
model = "${model}"
model_provider = "turnpike"
[model_providers.turnpike]
name = "Turnpike"
base_url = "${at.baseUrl}"
env_key = "TURNPIKE_KEY"
wire_api = "responses"
${more?.(home) ?? ""}
`;
  writeFileSync(join(home, "config.toml"), settings);
  const cli = createRequire(import.meta.url).resolve("@openai/codex/bin/codex.js");
  // Its own sandbox does not work in every container.
  const open = "--dangerously-bypass-approvals-and-sandbox";
  const args = [cli, "exec", "--json", "--skip-git-repo-check", open, prompt];
  const env = { PATH: process.env["PATH"], HOME: home, CODEX_HOME: home, TURNPIKE_KEY: key };
  const options = { env, cwd: home, timeout: 90_000 };
  return new Promise((resolve) => {
    const began = performance.now();
    const child = execFile(process.execPath, args, options, (_, stdout, log) => {
      rmSync(home, { recursive: true, force: true });
      const json = stdout.split("\n").filter((line) => line.startsWith("{"));
      const lines = json.map((line) => JSON.parse(line) as Line);
      resolve({ lines, log, took: performance.now() - began });
    });
    child.stdin?.end();
  });
}

export const textsOf = ({ lines }: Turn): unknown[] =>
  lines.flatMap(({ item }) => (item?.["type"] === "agent_message" ? [item["text"]] : []));

/** Returns the texts in its response to a prompt. */
export async function codexTexts(at: Gateway, options: CodexOptions): Promise<unknown[]> {
  return textsOf(await codex(at, options));
}
