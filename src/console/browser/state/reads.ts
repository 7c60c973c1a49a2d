import { useEffect, useState } from "preact/hooks";
import { call, createFailedOutcome, buildUrl } from "../api/client.ts";
import type {
  ApiCallName,
  CallFailure,
  ApiCallParameters,
  CallOutcome,
  ApiGetCall,
} from "../api/client.ts";
import type { Calls, Models } from "../api/types.ts";
import { askToConfirm, pendingConfirmation, callWithConfirmation } from "./confirming.ts";
import { reportConnection, reportLostConnection, onRetry } from "./connection.ts";
import { endSession, describeSessionEnd, session } from "./session.ts";

/**
 * A URL's latest response. Show `latest` only with `ReadResult` or `Inline` (ui/states.tsx),
 * because they add its age and failure.
 */
export type Read<T> = {
  readonly latest: T | undefined;
  readonly at: number;
  readonly failure: CallFailure | undefined;
  readonly reload: () => void;
};
type CacheEntry = {
  data: unknown;
  at: number;
  failure: CallFailure | undefined;
  pending: boolean;
  stale: boolean;
  readonly load: () => Promise<CallOutcome<unknown>>;
  readonly watchers: Set<() => void>;
};

const FRESH_MS = 2000;
const ENTRIES_MAX = 200;
const entries = new Map<string, CacheEntry>();
const otherTabs = new BroadcastChannel("turnpike-console");

/** Returns a call's response, first from the cache, then refreshed. A null `name` makes no call. */
export function useRead<C extends ApiGetCall>(
  name: C | null,
  filling: ApiCallParameters<C> = {},
  { every = 0 }: { readonly every?: number } = {},
): Read<Calls[C]["answer"]> {
  const url = name === null ? null : buildUrl(name, filling);
  return useCustomRead(url, async () => call(name as C, filling), { every });
}

export function latestOf<T>({ latest }: Read<T>): T | undefined {
  return latest;
}

/** Returns a `Read` of loaded data. */
export function fixedRead<T>(latest: T): Read<T> {
  return { latest, at: 0, failure: undefined, reload: () => undefined };
}

/** Reads like `useRead`, by the function `load`, with the cache key `url`. */
export function useCustomRead<T>(
  url: string | null,
  load: () => Promise<CallOutcome<T>>,
  { every = 0 }: { readonly every?: number } = {},
): Read<T> {
  const [, rerender] = useState(0);
  useEffect(() => {
    if (url === null) return undefined;
    const entry = entryOf(url, load);
    const watcher = (): void => rerender((count) => count + 1);
    entry.watchers.add(watcher);
    if (entry.stale || Date.now() - entry.at > FRESH_MS) void refresh(entry);
    const timer = every > 0 ? setInterval(() => refreshIfDue(entry, every), every) : 0;
    return () => {
      entry.watchers.delete(watcher);
      clearInterval(timer);
    };
  }, [url, every]);
  const entry = url === null ? undefined : entries.get(url);
  return {
    latest: entry?.data as T | undefined,
    at: entry?.at ?? 0,
    failure: entry?.failure,
    reload: () => entry && void refresh(entry),
  };
}

/** Makes a change, then refreshes all reads whose path starts with one of `touches`. */
export async function change<C extends ApiCallName>(
  name: C,
  filling: ApiCallParameters<C>,
  touches: readonly string[],
): Promise<CallOutcome<Calls[C]["answer"]>> {
  const outcome = await callWithConfirmation(name, async () => call(name, filling));
  if (outcome.ok) {
    reloadApiPaths(touches);
    otherTabs.postMessage(touches); // oxlint-disable-line unicorn/require-post-message-target-origin -- a channel has none
  } else handleFailure(outcome.failure);
  return outcome;
}

export async function readWithoutCache<C extends ApiGetCall>(
  name: C,
  filling: ApiCallParameters<C>,
): Promise<CallOutcome<Calls[C]["answer"]>> {
  const outcome = await callWithConfirmation(name, async () => call(name, filling));
  if (!outcome.ok) handleFailure(outcome.failure);
  return outcome;
}

/** Reads a list's pages, at most `max`. `isCut` reports whether there are more. */
export async function readPages<C extends ApiGetCall>(
  name: C,
  query: Calls[C]["query"],
  max: number,
): Promise<
  CallOutcome<{ readonly pages: readonly Calls[C]["answer"][]; readonly isCut: boolean }>
> {
  const pages: Calls[C]["answer"][] = [];
  let after: string | undefined;
  do {
    const outcome = await readWithoutCache(name, { query: { ...query, ...(after && { after }) } });
    if (!outcome.ok) return outcome;
    pages.push(outcome.value);
    after = (outcome.value as { readonly next_after?: string }).next_after;
  } while (after !== undefined && pages.length < max);
  return { ok: true, value: { pages, isCut: after !== undefined } };
}

/** Handles failures that affect the whole page. */
export function handleFailure(failure: CallFailure): void {
  const { status, code } = failure;
  if (code === "other_organization") location.reload();
  if (status === 0) reportLostConnection();
  if (status === 401) endSession(describeSessionEnd());
}

async function noteFailedRead(failure: CallFailure): Promise<void> {
  if (await askToConfirm(failure, "")) reloadApiPaths([""]);
  else handleFailure(failure);
}

function entryOf(url: string, load: CacheEntry["load"]): CacheEntry {
  const known = entries.get(url);
  if (known !== undefined) return known;
  for (const [old, { watchers }] of entries) {
    if (entries.size < ENTRIES_MAX) break;
    if (watchers.size === 0) entries.delete(old);
  }
  const entry: CacheEntry = {
    data: undefined,
    at: 0,
    failure: undefined,
    pending: false,
    stale: false,
    load,
    watchers: new Set(),
  };
  entries.set(url, entry);
  return entry;
}

async function refresh(entry: CacheEntry): Promise<void> {
  if (pendingConfirmation.get()?.why === "ended") return; // a late 401 would delete the new session's cookie
  if (entry.pending) {
    entry.stale = true; // the current read may predate the change
    return;
  }
  entry.pending = true;
  entry.stale = false;
  const outcome = await entry
    .load()
    .catch(() => createFailedOutcome("no_answer", "The response can't be read."));
  entry.pending = false;
  if (outcome.ok) {
    entry.data = outcome.value;
    entry.at = Date.now();
    entry.failure = undefined;
    reportConnection();
  } else {
    entry.failure = outcome.failure;
    if (outcome.failure.status !== 0) reportConnection();
    void noteFailedRead(outcome.failure);
  }
  for (const watcher of entry.watchers) watcher();
  if (entry.stale && outcome.ok) void refresh(entry);
}

/** Refreshes a read, unless another part of the page has just refreshed it. */
function refreshIfDue(entry: CacheEntry, every: number): void {
  const isDue = !entry.pending && Date.now() - entry.at > every - FRESH_MS;
  if (isDue && !document.hidden) void refresh(entry);
}

export function useModels(isEnabled = true) {
  const name = isEnabled ? "GET /v1/models" : null;
  return useRead(name, {}, { every: 30_000 }) as Read<Models>;
}

export function reloadApiPaths(paths: readonly string[]): void {
  for (const [url, entry] of entries) {
    if (!paths.some((path) => url.startsWith(`/console/api${path}`))) continue;
    entry.stale = true;
    if (entry.watchers.size > 0) void refresh(entry);
    else entries.delete(url); // the cache must never show outdated data
  }
}

function refreshShown(olderThanMs: number): boolean {
  if (document.hidden) return false;
  const shown = [...entries.values()].filter(
    ({ watchers, at }) => watchers.size > 0 && Date.now() - at > olderThanMs,
  );
  for (const entry of shown) void refresh(entry);
  return shown.length > 0;
}

otherTabs.addEventListener("message", ({ data }: MessageEvent<readonly string[]>) =>
  reloadApiPaths(data),
);
document.addEventListener("visibilitychange", () => refreshShown(FRESH_MS));
onRetry(() => refreshShown(0));
session.watch(() => {
  if (!session.get()) entries.clear(); // one session's data must never appear in the next
});
