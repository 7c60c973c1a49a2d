import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import type { Migration } from "../migrations.ts";
import type { Program } from "./place.ts";
import type { Seen, SampleData } from "./world.ts";

/** The last release: its bundle, its wrangler.toml, and a state that it left. Made by `npm run release:record`. */
export const LAST_RELEASE = path.join(import.meta.dirname, "../../test/last-release");

/** The state's content, and the last release's answers about it. */
export type Recorded = {
  readonly version: string;
  /** The book's migrations that it brought. */
  readonly migrations: readonly Migration[];
  /** When it was recorded, Unix ms. */
  readonly at: number;
  readonly world: SampleData;
  readonly seen: Seen;
};

export function readRecorded(): Recorded {
  const file = readFileSync(path.join(LAST_RELEASE, "recorded.json.gz"));
  return JSON.parse(gunzipSync(file).toString()) as Recorded;
}

/** The last release as it was deployed. It brings no migrations: the book is the newer one's by then. */
export function lastProgram(): Program {
  const code = gunzipSync(readFileSync(path.join(LAST_RELEASE, "worker.js.gz"))).toString();
  return { code, root: LAST_RELEASE, migrations: [] };
}

/** Returns the calls of each object by class and method, as `Wallet.hold`. */
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

/** The methods of a class and of those that it extends. */
function callsOf(prototype: object): readonly string[] {
  const above = Object.getPrototypeOf(prototype) as object | null;
  const inherited = above === null || above === Object.prototype ? [] : callsOf(above);
  return [...new Set([...Object.getOwnPropertyNames(prototype), ...inherited])];
}

/** Puts the recorded state into an empty directory. */
export function unpackState(directory: string): void {
  execFileSync("tar", ["-xzf", path.join(LAST_RELEASE, "state.tar.gz"), "-C", directory]);
}
