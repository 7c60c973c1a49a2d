import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "./estimate.ts";
import type { Step } from "./knee.ts";
import { attempt, prepare } from "./load.ts";
import type { Ask, Target } from "./target.ts";

export type Offer = {
  readonly target: Target;
  readonly ask: Ask;
  /** Requests a second, evenly spaced, whatever becomes of those before. */
  readonly rate: number;
  readonly seconds: number;
  /** How long after the step's end an answer still counts. */
  readonly patienceMs: number;
};
/** An answer: how long after it was due its first byte and its last came, when that was, its status (0 for none), whether it was a whole 200. */
export type Answered = {
  readonly firstByteMs: number;
  readonly ms: number;
  readonly atMs: number;
  readonly status: number;
  readonly isOk: boolean;
};

const TICK_MS = 1;

/**
 * Offers a rate for some seconds and waits for every answer. Times are from when a request was due, not
 * from when it was sent, so that a queue before the gateway counts, also one in this process. Whatever is
 * not a whole 200 (a shed 503 too) is not achieved.
 */
export async function offer(offered: Offer): Promise<Step & { readonly failed: number }> {
  const { rate, seconds, patienceMs } = offered;
  const answers = await answersTo(offered);
  const good = answers.filter(({ isOk }) => isOk);
  const inTime = good.filter(({ atMs }) => atMs <= seconds * 1000 + patienceMs);
  const times = good.map(({ ms }) => ms);
  return {
    offered: rate,
    achieved: (rate * inTime.length) / answers.length,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    failed: answers.length - good.length,
  };
}

/** Every answer to what is offered, in the order in which they were due. */
export async function answersTo(offered: Offer): Promise<readonly Answered[]> {
  return Promise.all(await sendAll(offered));
}

async function sendAll({ target, ask, rate, seconds }: Offer): Promise<Promise<Answered>[]> {
  const asked = prepare(ask);
  const begunAt = performance.now();
  const send = async (dueMs: number): Promise<Answered> => {
    const lateMs = performance.now() - begunAt - dueMs;
    const { status, isWhole, firstByteMs } = await attempt(target, asked);
    const atMs = performance.now() - begunAt;
    const isOk = status === 200 && isWhole;
    return { firstByteMs: lateMs + firstByteMs, ms: atMs - dueMs, atMs, status, isOk };
  };
  const all = Math.max(1, Math.round(rate * seconds));
  const sent: Promise<Answered>[] = [];
  while (sent.length < all) {
    const elapsedMs = performance.now() - begunAt;
    while (sent.length < all && (sent.length * 1000) / rate <= elapsedMs) {
      sent.push(send((sent.length * 1000) / rate));
    }
    await sleep(TICK_MS);
  }
  return sent;
}
