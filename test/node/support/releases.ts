import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { expect } from "vitest";
import { bundleWorker } from "../../../scripts/bundle.ts";
import { readMigrations } from "../../../scripts/migrations.ts";
import type { Migration } from "../../../scripts/migrations.ts";
import { HOST } from "../../../scripts/region.ts";
import { startReleaseRegion } from "./release-region.ts";
import type { ReleaseRegion, Program } from "./release-region.ts";
import { objectCalls, readRecorded, unpackState } from "./release-recorded.ts";
import {
  readSampleData,
  readAfterEvents,
  changeWebhookUrl,
  withoutPassingFields,
  useSampleData,
} from "./release-data.ts";
import type { RecordedResponses } from "./release-data.ts";
import { removeDirectory } from "../../../scripts/tmpfs.ts";

const NEXT = path.join(import.meta.dirname, "../../fixtures/next-release-worker.ts");
/** The next release's addition to the database. */
const ADDED: Migration = {
  name: "9999_trial.sql",
  queries: ["ALTER TABLE keys ADD COLUMN trial TEXT", "CREATE TABLE trial (x INTEGER) STRICT"],
};

/**
 * Returns this checkout's code with one more step in every store. `isTooNew`: earlier releases must
 * not read them.
 */
export async function nextProgram(isTooNew = false): Promise<Program> {
  const code = await bundleWorker(false, NEXT, { TOO_NEW: String(isTooNew) });
  return { code, migrations: [...readMigrations(), ADDED] };
}

/**
 * Returns one release's Worker with another's objects, because each can call the other's during a
 * deploy.
 */
export async function mixedProgram(worker: Program, objects: Program): Promise<Program> {
  const directory = mkdtempSync(path.join(tmpdir(), "turnpike-mixed-"));
  const classes = new Set((await objectCalls(objects)).map(classOf));
  const workerClasses = new Set((await objectCalls(worker)).map(classOf));
  const added = [...workerClasses].filter((name) => !classes.has(name));
  const entry = `export * from "./objects.js";
    export { default, ${added.join(", ")} } from "./worker.js";`;
  try {
    writeFileSync(path.join(directory, "worker.js"), worker.code);
    writeFileSync(path.join(directory, "objects.js"), objects.code);
    writeFileSync(path.join(directory, "entry.js"), entry);
    return { ...worker, code: await bundleWorker(false, path.join(directory, "entry.js")) };
  } finally {
    removeDirectory(directory);
  }
}

/** Returns the class of an object's method, such as `Wallet` for `Wallet.hold`. */
function classOf(call: string): string {
  return call.slice(0, call.indexOf("."));
}

/** A release to run. `isNewer`: newer than the one before it. */
type Turn = { readonly program: Program; readonly isNewer: boolean };

/**
 * Runs releases in sequence on one state. Checks that each returns the earlier data, that
 * everything works, that the webhook gets all events, and that the log has no errors.
 */
export async function runInTurn(turns: readonly Turn[]): Promise<void> {
  const { at, world: sampleData, seen: recorded } = readRecorded();
  const directory = mkdtempSync(path.join(tmpdir(), "turnpike-releases-"));
  const clockOffsetMs = at - Date.now();
  const receiver = await startReceiver(sampleData.webhook.secret);
  let before = withoutPassingFields(recorded);
  try {
    unpackState(directory);
    for (const turn of turns) {
      const place = await startReleaseRegion(turn.program, directory, clockOffsetMs);
      try {
        before = await takeTurn(place, before, { isNewer: turn.isNewer, hook: receiver.url });
      } finally {
        await place.miniflare.dispose();
      }
    }
    const known = idsOf(recorded);
    const later = idsOf(before).filter((id) => !known.includes(id));
    expect(later.filter((id) => !receiver.eventIds.has(id))).toEqual([]);
  } finally {
    receiver.stop();
    removeDirectory(directory);
  }
}

/**
 * Checks that a release finds the previous responses, and uses the data. Returns its own responses.
 */
async function takeTurn(
  place: ReleaseRegion,
  before: RecordedResponses,
  { isNewer, hook }: { readonly isNewer: boolean; readonly hook: string },
): Promise<RecordedResponses> {
  const { world: sampleData } = readRecorded();
  const now = await readSampleData(place.url, sampleData);
  // The older of two releases can return fewer fields, but no others.
  const [older, newer] = isNewer ? [before, now] : [now, before];
  for (const what of Object.keys(before)) {
    expect({ [what]: newer[what] }).toMatchObject({ [what]: older[what] });
  }
  expect(now["reconcile"]?.body).toMatchObject({ differences: [] });
  await changeWebhookUrl(place.url, sampleData, hook);
  await useSampleData(place.url, sampleData);
  const after = await readAfterEvents(place.url, sampleData);
  expect(place.log.filter(({ level }) => level === "error")).toEqual([]);
  return after;
}

/** Starts a webhook endpoint that records events signed with this secret. */
async function startReceiver(secret: string) {
  const eventIds = new Set<string>();
  const hear = ({ headers }: IncomingMessage, body: string): void => {
    const id = String(headers["webhook-id"]);
    // Signed at the time of the state, which a check of the time would reject.
    const at = new Date(Number(headers["webhook-timestamp"]) * 1000);
    if (headers["webhook-signature"] === new Webhook(secret).sign(id, at, body)) eventIds.add(id);
  };
  const server = createServer((request, response) => {
    void text(request)
      .then((body) => hear(request, body))
      .finally(() => response.end());
  });
  await new Promise<void>((listening) => server.listen(0, HOST, listening));
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}/hook`,
    eventIds,
    stop,
  };
}

/** Returns the IDs of listed events. */
function idsOf(seen: RecordedResponses): string[] {
  const body = seen["events"]?.body as { events: readonly { id: string }[] } | undefined;
  return body?.events.map(({ id }) => id) ?? [];
}
