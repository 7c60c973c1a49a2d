import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { removeDirectory } from "../../../scripts/tmpfs.ts";

const FILE = path.join(import.meta.dirname, "../../../wrangler.toml");
const EU_ID = "3f2a8c1e-5b7d-4e90-a1c4-6d8e0f2b4a71";
const US_ID = "9c1d7e5b-2f4a-4b68-8e30-1a5c7d9f3b26";

/** A temporary folder for changed copies of wrangler.toml. */
export class DeployFiles {
  readonly directory = mkdtempSync(path.join(tmpdir(), "turnpike-deploy-"));
  #count = 0;

  /**
   * Writes the repository's file, made ready to deploy, with these texts replaced. Each must occur
   * in it.
   */
  write(...changes: readonly (readonly [from: string | RegExp, to: string])[]): string {
    const filled: readonly (readonly [string | RegExp, string])[] = [
      [/turnpike\.example\.com/g, "gateway.test"],
      ["11111111-1111-1111-1111-111111111111", EU_ID],
      ["22222222-2222-2222-2222-222222222222", US_ID],
      ['vars = { REGION = "eu",', 'vars = { REGION = "eu", OPENAI_RESIDENCY = "on",'],
      ...changes,
    ];
    let text = readFileSync(FILE, "utf8");
    for (const [from, to] of filled) {
      const next = text.replace(from, to);
      if (next === text) throw new Error(`wrangler.toml has no ${from}`);
      text = next;
    }
    const file = path.join(this.directory, `wrangler-${this.#count++}.toml`);
    writeFileSync(file, text);
    return file;
  }

  remove(): void {
    removeDirectory(this.directory);
  }
}

/** Returns a replacement that adds variables to the EU. */
export function euVars(vars: string): readonly [string, string] {
  return ['vars = { REGION = "eu",', `vars = { ${vars}, REGION = "eu",`];
}

/** Secrets that the EU requires, and one of a provider. */
export const EU_SECRETS: readonly string[] = [
  "KEY_SECRETS",
  "ADMIN_TOKEN",
  "PEER_OUT_US",
  "PEER_IN_US",
  "OPENAI_API_KEY",
];
