import * as z from "zod/mini";
import {
  credentialFromJson,
  presentedFields,
  presentedToJson,
} from "../../accounts/keys/session-token.ts";
import { requestCredential } from "../../shared/caller.ts";
import type { Caller } from "../../shared/caller.ts";
import { elapsedMs } from "../../shared/clock.ts";
import type { StoppedRun, WatchedRun } from "../../shared/contracts/pauses.ts";
import { peerFailureSchema } from "../../shared/failure.ts";
import { keyHashSchema } from "../../shared/key.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import type { Timers } from "../../shared/timers.ts";
import type { RunBoard } from "./run-board.ts";
import type { RunTimer } from "./run-timer.ts";

/** Age in ms from which a request is watched. Shorter requests cause no calls. */
const WATCH_AFTER_MS = 6000;
const TICK_MS = 1000;

export type FindStoppedRuns = (runs: readonly WatchedRun[]) => Promise<readonly StoppedRun[]>;

type RunToWatch = {
  readonly id: string;
  readonly caller: Caller;
  readonly timers: Timers;
  readonly timer: RunTimer;
  readonly board: RunBoard;
  readonly ask: FindStoppedRuns;
  /** Keeps a query running if the request that sent it ends first. */
  readonly waitUntil: (work: Promise<unknown>) => void;
};

/**
 * Ends a running request within 15 s of a pause with `stop_running`, or of the end of its key or
 * session: up to 6 s unwatched, 4 s between queries, 3.5 s for the result and a tick.
 */
export function watchRun({ id, caller, timers, timer, board, ask, waitUntil }: RunToWatch): void {
  const { orgId } = caller;
  const run = { id, called: requestCredential(caller.keyHash, caller.shown) };
  const logFailure = (error: unknown): void => {
    logWarning("running_requests_unwatched", { org_id: orgId, reason: errorMessageOf(error) });
  };
  const tick = (): void => {
    const { stop, due } = board.tick(orgId, run, elapsedMs());
    if (stop !== null) return timer.halt(stop);
    timers.after(TICK_MS, tick);
    if (due === null) return;
    waitUntil(ask(due.runs).then((stops) => board.addResult(orgId, due, stops), logFailure));
  };
  timers.after(WATCH_AFTER_MS, tick);
}

const requestSchema = z.object({
  org_id: z.string().check(z.minLength(1), z.maxLength(64)),
  runs: z.array(z.object({ id: z.string(), key_hash: keyHashSchema, ...presentedFields })),
});

export function watchRequestToJson(orgId: string, runs: readonly WatchedRun[]): object {
  return {
    org_id: orgId,
    runs: runs.map(({ id, called }) => {
      return { id, key_hash: called.keyHash, ...presentedToJson(called) };
    }),
  };
}

export function parseWatchBody(
  body: unknown,
): { readonly orgId: string; readonly runs: readonly WatchedRun[] } | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { org_id: orgId, runs } = parsed.data;
  return {
    orgId,
    runs: runs.map((one) => ({ id: one.id, called: credentialFromJson(one.key_hash, one) })),
  };
}

const responseSchema = z.object({
  stops: z.array(z.object({ id: z.string(), failure: peerFailureSchema })),
});

export function parseStops(body: unknown): readonly StoppedRun[] | null {
  const parsed = responseSchema.safeParse(body);
  return parsed.success ? parsed.data.stops : null;
}
