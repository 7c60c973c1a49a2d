import type { Failure, Result } from "../lib/failure.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Micros } from "../lib/money.ts";
import type { Route } from "../catalog/model.ts";
import type { Spent } from "../providers/provider.ts";
import { failover } from "../providers/failover.ts";
import type { Candidate, FailoverOptions, Served } from "../providers/failover.ts";
import { answerJson } from "./answer-json.ts";
import { named, speaks } from "./bound.ts";
import { chargeFor, inputOnly } from "./charge.ts";
import { meterStream } from "./meter-stream.ts";
import type { Run, ServingRoute } from "./paid-request.ts";
import { RunTimer } from "./run-timer.ts";
import { enqueue, settleRun, voidItem } from "./settle.ts";
import { affordableCap } from "./worst-cost.ts";

const SLOW_TOKEN_MS = 50;
const JSON_TIMEOUT_MS_MAX = 600_000;

/**
 * THE PATH of a paid request: hold -> call a route, with failover -> answer -> settle before the last
 * byte. One promise owns the hold to its end; the handler registers it with waitUntil before the
 * hold and only awaits the response, so a client that leaves cannot strand a hold.
 */
export async function runPaid(run: Run, client: AbortSignal): Promise<void> {
  const { numbers } = run.services;
  const timer = new RunTimer(client, run.timers, {
    deadlineMs: numbers.REQUEST_DEADLINE_S * 1000,
    drainMs: numbers.DRAIN_S * 1000,
  });
  try {
    await holdAndAnswer(run, timer);
  } catch (error) {
    // A bug: the customer does not pay for it. What was settled before it stays settled: a void now
    // could overtake a charge that still waits in the outbox, and win.
    if (!run.progress.mayBeCharged) await settleRun(run, { kind: "void", reason: "exception" });
    throw error;
  } finally {
    run.timers.close();
  }
}

async function holdAndAnswer(run: Run, timer: RunTimer): Promise<void> {
  const held = await holdFor(run);
  if (!held.ok) return run.refuse(held.failure);
  if (timer.clientGone) return release(run, { kind: "internal" }, "client left before dispatch");

  const offers = affordable(run, held.value);
  const last: { asked: Asked | null; spent: SpentThere | null } = { asked: null, spent: null };
  const served = await callRoute(run, offers, {
    timer,
    onAsked: (asked) => {
      last.asked = asked === null ? null : askedOf(offers, asked);
    },
    onSpent: (asked, spent) => {
      const there = askedOf(offers, asked);
      if (there !== null) last.spent = { asked: there, spent };
    },
  });
  if (!served.ok) {
    const { failure } = named(served, run.request.paramOf);
    return fail(run, failure, { timer, ...last });
  }

  run.dropBody();
  const route = servingRoute(run, served.value, offers);
  await answer(run, route, { served: served.value, timer });
}

async function answer(
  run: Run,
  route: ServingRoute,
  { served, timer }: { readonly served: Served; readonly timer: RunTimer },
): Promise<void> {
  const { request } = run;
  const { answer: given } = served;
  const reply = route.isNative && request.native !== null ? request.native.reply : request.reply;
  if (given.kind === "json" && reply.kind === "json") {
    return answerJson(run, route, { answer: given, reply });
  }
  if (given.kind === "stream" && reply.kind === "stream") {
    return meterStream(run, route, { events: given.events, timer, reply });
  }
  throw new Error("an answer of another kind than was asked for");
}

/** A route that the grant can pay for, with the output cap it pays for there. */
type Offer = { readonly route: Route; readonly cap: number | null; readonly candidate: Candidate };

/** The route that the request was sent to last, whose work a client that leaves pays for. */
type Asked = Omit<ServingRoute, "firstByteMs">;

/** What an attempt has used whose answer the request kept from being finished. */
type SpentThere = { readonly asked: Asked; readonly spent: Spent };

function askedOf(
  offers: readonly Offer[],
  { index, attempts }: { readonly index: number; readonly attempts: number },
): Asked | null {
  const offer = offers[index];
  return offer === undefined ? null : { ...servedBy(offer), attempts };
}

/** Holds between least and most. An unknown outcome is voided by the outbox and refused. */
async function holdFor(run: Run): Promise<Result<Micros>> {
  const { bounds, user } = run.request;
  const { caller, id, services } = run;
  const reached = await services.hold(
    {
      id,
      least: bounds.least,
      most: bounds.most,
      externalId: user,
      keyId: caller.keyId,
      peer: caller.home !== services.region,
      idempotency: run.idempotency,
    },
    run.timers.after,
  );
  if (!reached.unanswered) {
    const { result } = reached;
    return result.ok ? success(result.value.granted) : result;
  }
  await enqueue(run, voidItem(run));
  return refuse(reached.failure);
}

/** The routes that the grant pays for, each with its cap. The dearest one is paid for by construction. */
function affordable(run: Run, granted: Micros): Offer[] {
  const { routes, prompt, cap, native } = run.request;
  return routes.flatMap((route) => {
    const provider = run.services.providers.get(route.provider);
    const routeCap = cap === null ? null : affordableCap(route, prompt, cap, granted);
    if (provider === undefined || (cap !== null && routeCap === null)) return [];
    return [
      {
        route,
        cap: routeCap,
        candidate: {
          provider,
          upstreamId: route.upstreamId,
          cap: routeCap,
          ...(native !== null && speaks(provider, route, native) && { native }),
        },
      },
    ];
  });
}

async function callRoute(
  run: Run,
  offers: readonly Offer[],
  { timer, ...told }: { timer: RunTimer } & Pick<FailoverOptions, "onAsked" | "onSpent">,
): Promise<Result<Served>> {
  if (offers.length === 0) return refuse({ kind: "upstream_error" });
  const { kind, body, stream } = run.request;
  const { health, now, numbers } = run.services;
  return failover(
    offers.map((offer) => offer.candidate),
    { kind, body, stream, paceMs: numbers.STREAM_PACE_MS, room: run.room },
    {
      health,
      now,
      signal: timer.signal,
      headersMs: stream ? numbers.UPSTREAM_HEADERS_MS : jsonTimeoutMs(run, offers),
      firstMs: numbers.UPSTREAM_FIRST_MS,
      after: run.timers.after,
      ...told,
      mayRetry: () => !timer.clientGone,
    },
  );
}

/** A JSON answer comes whole: time for its output at a slow model's pace, at most ten minutes. */
function jsonTimeoutMs(run: Run, offers: readonly Offer[]): number {
  const { UPSTREAM_HEADERS_MS } = run.services.numbers;
  const tokens = Math.max(0, ...offers.map((offer) => offer.cap ?? 0));
  return Math.max(UPSTREAM_HEADERS_MS, Math.min(JSON_TIMEOUT_MS_MAX, tokens * SLOW_TOKEN_MS));
}

function servingRoute(run: Run, served: Served, offers: readonly Offer[]): ServingRoute {
  const offer = offers[served.index];
  if (offer === undefined) throw new Error("the route that served was not a candidate");
  return {
    ...servedBy(offer),
    attempts: served.attempts,
    firstByteMs: run.services.now() - run.startedMs,
  };
}

function servedBy({ route, cap, candidate }: Offer) {
  return { route, cap, isNative: candidate.native !== undefined };
}

/**
 * Nothing was answered. The client that left while a route was working on its request pays for the
 * input: the upstream does too. So does one whose request kept an answer from being finished for what that
 * has used (of the last such answer). Everybody else pays nothing.
 */
async function fail(
  run: Run,
  failure: Failure,
  at: { timer: RunTimer; asked: Asked | null; spent: SpentThere | null },
): Promise<void> {
  if (at.spent !== null) {
    const { asked, spent } = at.spent;
    const route = { ...asked, firstByteMs: run.services.now() - run.startedMs };
    const seen = { ...spent, finishReason: null };
    await settleRun(run, chargeFor(run, route, seen, { ending: "provoked", readerAway: false }));
    return run.refuse(failure);
  }
  if (at.timer.reason !== "drained" || at.asked === null) {
    return release(run, failure, failure.kind);
  }
  await settleRun(run, inputOnly(run, at.asked));
  run.refuse(failure);
}

/** Voids the hold, then answers: a client that retries at once finds its credit free again. */
async function release(run: Run, failure: Failure, reason: string): Promise<void> {
  await settleRun(run, { kind: "void", reason });
  run.refuse(failure);
}
