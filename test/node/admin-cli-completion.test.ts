import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { completionScript } from "../../scripts/admin/completion-command.ts";
import { program } from "../../scripts/admin/command-line.ts";
import { callAdmin } from "./support/admin-cli.ts";

/** Returns the completions that bash finds for the last of these words. */
function completed(...words: readonly string[]): readonly string[] {
  const given = ["admin", ...words].map((word) => `'${word}'`).join(" ");
  const script = `${completionScript(program(), false)}
COMP_WORDS=(${given}); COMP_CWORD=${words.length}; _turnpike_admin
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const printed = execFileSync("bash", ["-c", script]).toString();
  return printed.split("\n").filter((word) => word !== "");
}

describe("the shell completion of the operator's CLI", () => {
  it.each<[readonly string[], readonly string[]]>([
    [["org"], ["orgs"]],
    [
      ["orgs", "res"],
      ["resume", "restore"],
    ],
    [
      ["--local", ""],
      ["eu", "us"],
    ],
    [["--local", "eu", "keys", "revoke", "example", "--y"], ["--yes"]],
    [["members", "add", "example", "a@example.com", "--role", "bil"], ["billing"]],
    [["credits", "add", "example", "--reference", ""], []],
    [["completion", "z"], ["zsh"]],
  ])("completes %j to %j", (words, expected) => {
    expect([...completed(...words)].toSorted()).toEqual([...expected].toSorted());
  });

  it("comes from a command that supports both shells", async () => {
    const printed = await callAdmin(["completion", "bash"]);
    expect(printed).toMatchObject({ code: 0, err: "" });
    expect(printed.out).toBe(completionScript(program(), false));
    const zsh = await callAdmin(["completion", "zsh"]);
    expect(zsh.out).toContain("bashcompinit");
  });
});
