import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";

const ROOT = path.join(import.meta.dirname, "../..");
const ASK_MS = 60_000;

/** Wrangler's output. `ok` means exit code 0. */
type WranglerOutput = { readonly ok: boolean; readonly out: string; readonly err: string };

/** Returns the names of the objects that wrangler printed as a JSON list, or null for other text. */
export function namesIn(
  output: string,
  listOf = (json: unknown): unknown => json,
): string[] | null {
  try {
    const names = (listOf(JSON.parse(output)) as { name?: unknown }[]).map(({ name }) => name);
    return names.every((name) => typeof name === "string") ? names : null;
  } catch {
    return null;
  }
}

/**
 * Runs wrangler without a terminal, so that it never opens a browser. Its output can contain
 * secrets and is never printed. `ok` is false if wrangler or a login is missing, or after a minute.
 */
export async function askWrangler(
  given: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<WranglerOutput> {
  const child = spawn("wrangler", given, {
    cwd: ROOT,
    env: {
      ...process.env,
      // This Node comes first in PATH, because wrangler needs a newer version than the machine
      // might have.
      PATH: [path.dirname(process.execPath), process.env["PATH"], `${ROOT}/node_modules/.bin`].join(
        path.delimiter,
      ),
      WRANGLER_LOG: "log",
      WRANGLER_LOG_PATH: path.join(tmpdir(), "turnpike-wrangler-logs"),
      WRANGLER_SEND_METRICS: "false",
      NO_COLOR: "1",
      ...variables,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: ASK_MS,
  });
  const closed = once(child, "close").catch(() => null); // the error means that wrangler is missing
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { ok: child.exitCode === 0, out, err };
}
