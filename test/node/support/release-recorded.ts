import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import type { Migration } from "../../../scripts/migrations.ts";
import type { Program } from "./release-region.ts";
import type { RecordedResponses, SampleData } from "./release-data.ts";

/**
 * The recorded last release: its bundle, wrangler.toml and a state that it left. `npm run
 * release:record` creates it.
 */
export const LAST_RELEASE = path.join(import.meta.dirname, "../../last-release");

/** The sample data in the state, and the last release's responses about it. */
export type Recorded = {
  readonly version: string;
  readonly migrations: readonly Migration[];
  /** Time of the recording, Unix ms. */
  readonly at: number;
  readonly world: SampleData;
  readonly seen: RecordedResponses;
};

export function readRecorded(): Recorded {
  const file = readFileSync(path.join(LAST_RELEASE, "recorded.json.gz"));
  return JSON.parse(gunzipSync(file).toString()) as Recorded;
}

/** Returns the last release without migrations, because it runs on the newer database. */
export function lastProgram(): Program {
  const code = gunzipSync(readFileSync(path.join(LAST_RELEASE, "worker.js.gz"))).toString();
  return { code, root: LAST_RELEASE, migrations: [] };
}

/** Returns the methods of every Durable Object class, such as `Wallet.hold`. */
export async function objectCalls({ code }: Program): Promise<readonly string[]> {
  const outside = "data:text/javascript,export class DurableObject{};export const env={}";
  const alone = code.replaceAll(/from\s*"cloudflare:workers"/g, `from "${outside}"`);
  const bytes = Buffer.from(alone).toString("base64");
  const exported: object = await import(/* @vite-ignore */ `data:text/javascript;base64,${bytes}`);
  const objects = Object.entries(exported).filter(([, value]) => typeof value === "function");
  return objects.flatMap(([name, { prototype }]) =>
    callsOf(prototype as object).map((call) => `${name}.${call}`),
  );
}

/** Returns the methods of a class and its base classes. */
function callsOf(prototype: object): readonly string[] {
  const above = Object.getPrototypeOf(prototype) as object | null;
  const inherited = above === null || above === Object.prototype ? [] : callsOf(above);
  return [...new Set([...Object.getOwnPropertyNames(prototype), ...inherited])];
}

export function unpackState(directory: string): void {
  execFileSync("tar", ["-xzf", path.join(LAST_RELEASE, "state.tar.gz"), "-C", directory]);
}
