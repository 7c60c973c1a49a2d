import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { gateway } from "./gateway.ts";

const at = gateway();

/** What `codex exec` prints, in a home of its own and with no network but ours. */
function codex(prompt: string): Promise<{ readonly said: string; readonly log: string }> {
  const home = mkdtempSync(join(tmpdir(), "codex-"));
  const settings = `
model = "sandbox/echo"
model_provider = "turnpike"
[model_providers.turnpike]
name = "Turnpike"
base_url = "${at.baseUrl}"
env_key = "TURNPIKE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`;
  writeFileSync(join(home, "config.toml"), settings);
  const cli = createRequire(import.meta.url).resolve("@openai/codex/bin/codex.js");
  const args = [cli, "exec", "--skip-git-repo-check", "--sandbox", "read-only", prompt];
  const env = { PATH: process.env["PATH"], HOME: home, CODEX_HOME: home, TURNPIKE_KEY: at.key };
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      args,
      { env, cwd: home, timeout: 90_000 },
      (error, said, log) => {
        rmSync(home, { recursive: true, force: true });
        if (error === null) resolve({ said, log });
        else reject(new Error(`${error.message}\n${log}`));
      },
    );
    child.stdin?.end();
  });
}

it("codex exec: an answer, and it is paid for", async () => {
  const before = await at.balance();
  const { said } = await codex("Say hello to the gateway");
  expect(said).toContain("Say hello to the gateway");
  expect(await at.balance()).toBeLessThan(before);
});
