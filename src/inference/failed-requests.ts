import { BATCH_COUNTS_MAX, BATCH_REQUESTS_MAX } from "../lib/failed-request.ts";
import type { FailedBatch, FailedRequest, FailureCount } from "../lib/failed-request.ts";
import type { Region } from "../lib/caller.ts";
import { elapsedMs } from "../lib/clock.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { within } from "../lib/within.ts";

/** Whose wallet is told, and where it is. */
export type Told = { readonly orgId: string; readonly home: Region };
/** Tells a wallet, once; throws where it was not heard. */
export type Tell = (to: Told, batch: FailedBatch) => Promise<unknown>;

const HOUR_MS = 3_600_000;
const ORGANIZATIONS_MAX = 500;
const TELL_TIMEOUT_MS = 5000;
/** The platform ends a waitUntil at 30 s, and whoever waits in it. */
const LOST_AFTER_MS = 30_000;

type Waiting = {
  readonly to: Told;
  readonly requests: FailedRequest[];
  readonly counts: Map<string, FailureCount>;
};

/**
 * The failed requests that an isolate has not told their wallets of: the newest by themselves, all of them as
 * counts. Told `delayMs` after the first, together, so that a storm of refusals is a call in that time; or as soon as
 * somebody reads here. What an isolate that dies had not told is lost: it is no money.
 */
export class FailedRequests {
  readonly #delayMs: number;
  readonly #waiting = new Map<string, Waiting>();
  /** When the wait for the next telling began, `elapsedMs`; never while nobody waits. */
  #begunMs = -Infinity;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  note(to: Told, request: FailedRequest): void {
    const known = this.#waiting.get(to.orgId);
    if (known === undefined && this.#waiting.size >= ORGANIZATIONS_MAX) return;
    const waiting: Waiting = known ?? { to, requests: [], counts: new Map() };
    this.#waiting.set(to.orgId, waiting);
    waiting.requests.push(request);
    if (waiting.requests.length > BATCH_REQUESTS_MAX) waiting.requests.shift();
    const { id: lastId, at: lastAt, keyId, error } = request;
    const hour = lastAt - (lastAt % HOUR_MS);
    const name = `${hour} ${keyId} ${error.code} ${error.status}`;
    const before = waiting.counts.get(name)?.count ?? 0;
    if (before === 0 && waiting.counts.size >= BATCH_COUNTS_MAX) return;
    const { code, status } = error;
    waiting.counts.set(name, { hour, keyId, code, status, count: before + 1, lastAt, lastId });
  }

  /** Has everything told in a while, unless that is under way; `waitUntil` keeps the isolate for it. */
  tellLater(waitUntil: (work: Promise<unknown>) => void, tell: Tell): void {
    if (this.#waiting.size === 0) return;
    if (Math.abs(elapsedMs() - this.#begunMs) <= this.#delayMs + LOST_AFTER_MS) return;
    this.#begunMs = elapsedMs();
    waitUntil(this.#later(tell));
  }

  async #later(tell: Tell): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#begunMs = -Infinity;
    await Promise.all([...this.#waiting.keys()].map((orgId) => this.tellNow(orgId, tell)));
  }

  /**
   * Returns once what was noted of an organisation is told, or could not be. What another request is telling is not
   * waited for: a promise belongs to the request that made it.
   */
  async tellNow(orgId: string, tell: Tell): Promise<void> {
    const waiting = this.#waiting.get(orgId);
    this.#waiting.delete(orgId);
    if (waiting !== undefined) await toldOnce(waiting, tell);
  }
}

async function toldOnce({ to, requests, counts }: Waiting, tell: Tell): Promise<void> {
  try {
    await within(tell(to, { requests, counts: [...counts.values()] }), TELL_TIMEOUT_MS);
  } catch (error) {
    // Not again: the lost call may have arrived, and a count must never be twice the truth.
    const reason = reasonOf(error);
    logWarning("failures_not_taken", { org_id: to.orgId, requests: requests.length, reason });
  }
}
