import type { Failure, Result } from "../lib/failure.ts";
import { refuse } from "../lib/failure.ts";
import type { HoldGrant } from "../wallet/wallet-contract.ts";
import type { Route } from "../catalog/model.ts";
import { listOf } from "../core/json-value.ts";
import { PROMPTS_AT_ONCE } from "../core/prompts-apart.ts";
import type { Spent } from "../core/provider.ts";
import { failover } from "../routing/failover.ts";
import type {
  Asked as AskedThere,
  Candidate,
  FailoverOptions,
  Served,
} from "../routing/failover.ts";
import { routeName } from "../routing/route-health.ts";
import type { FailedAttempt } from "../lib/generation.ts";
import { named, speaks } from "./bound.ts";
import { chargeFor, inputOnly } from "./charge.ts";
import { attemptFailed } from "./failed-attempt.ts";
import { affordableCap } from "./hold-bounds.ts";
import type { Ended, Outcome, Run, ServingRoute } from "./paid-request.ts";
import { nowOpen, toldWith } from "./settle.ts";

const SLOW_TOKEN_MS = 50;
const JSON_TIMEOUT_MS_MAX = 600_000;

/** A route that has begun to answer; or, when none did, what that comes to. */
export type Answering =
  | { readonly ok: true; readonly route: ServingRoute; readonly answer: Served["answer"] }
  | { readonly ok: false; readonly ended: Ended };

/**
 * Asks the routes that the grant pays for, in order, until one answers. Once one has, nobody else will be
 * asked: the request's body is let go.
 */
export async function ask(run: Run, grant: HoldGrant): Promise<Answering> {
  if (run.timer.clientGone) {
    return { ok: false, ended: released(run, { kind: "internal" }, "client left before dispatch") };
  }
  const routes = affordable(run, grant);
  const last: Last = { asked: null, spent: null };
  nowOpen(run, {
    owed: () => owed(run, last) ?? { kind: "void", reason: "exception" },
    close: () => Promise.resolve(),
  });
  const served = await callRoute(run, routes, {
    onAsked: (asked) => {
      last.asked = asked === null ? null : askedOf(routes, asked);
    },
    onSpent: (asked, spent) => {
      const there = askedOf(routes, asked);
      if (there !== null) last.spent = { asked: there, spent };
    },
  });
  if (!served.ok) {
    const { failure } = named(served, run.request);
    return { ok: false, ended: unanswered(run, failure, last) };
  }
  run.dropBody();
  const { answer } = served.value;
  return { ok: true, route: servingRoute(run, served.value, routes), answer };
}

/** A route that the grant can pay for, with the output cap it pays for there. */
type CappedRoute = {
  readonly route: Route;
  readonly cap: number | null;
  readonly candidate: Candidate;
};

/** The route that the request was sent to last, whose work a client that leaves pays for. */
type Asked = Omit<ServingRoute, "firstByteMs" | "dropped">;

/** What an attempt has used whose answer the request kept from being finished. */
type SpentThere = { readonly asked: Asked; readonly spent: Spent };

/** What of the attempts so far somebody may have to pay for. */
type Last = { asked: Asked | null; spent: SpentThere | null };

function askedOf(
  routes: readonly CappedRoute[],
  { index, attempts, failed }: AskedThere,
): Asked | null {
  const capped = routes[index];
  if (capped === undefined) return null;
  const asked = { ...routeOf(capped), attempts };
  return failed.length === 0 ? asked : { ...asked, failed: failedThere(routes, failed) };
}

/** The attempts before as receipts name them. */
function failedThere(
  routes: readonly CappedRoute[],
  failed: AskedThere["failed"],
): readonly FailedAttempt[] {
  return failed.flatMap(({ index, why }) => {
    const route = routes[index]?.route;
    return route === undefined ? [] : [{ route: routeName(route.provider, route.upstreamId), why }];
  });
}

/** The routes that the grant pays for, each with its cap. The dearest one is paid for by construction. */
function affordable(run: Run, { granted, tokens }: HoldGrant): CappedRoute[] {
  const { routes, prompt, cap, native } = run.request;
  return routes.flatMap((route) => {
    const provider = run.services.providers.get(route.provider);
    const paidFor = cap === null ? null : affordableCap(route, prompt, cap, granted);
    if (provider === undefined || (cap !== null && paidFor === null)) return [];
    const routeCap = paidFor === null ? null : Math.min(paidFor, tokensLeft(run, tokens?.granted));
    return [
      {
        route,
        cap: routeCap,
        candidate: {
          provider,
          upstreamId: route.upstreamId,
          cap: routeCap,
          native: native !== null && speaks(provider, route, native) ? native : undefined,
        },
      },
    ];
  });
}

/** What the tokens granted of the key's limit leave to each choice after the prompt. */
function tokensLeft({ request: { cap, prompt } }: Run, granted: number | undefined): number {
  if (granted === undefined) return Infinity;
  return Math.floor((granted - prompt.estimate) / (cap?.choices ?? 1));
}

async function callRoute(
  run: Run,
  routes: readonly CappedRoute[],
  { onAsked, onSpent }: Required<Pick<FailoverOptions, "onAsked" | "onSpent">>,
): Promise<Result<Served>> {
  if (routes.length === 0) return refuse({ kind: "upstream_error" });
  const { kind, body, stream, apart, user } = run.request;
  const customer = { orgId: run.caller.orgId, user };
  const { health, now, numbers } = run.services;
  return failover(
    routes.map(({ candidate }) => candidate),
    {
      kind,
      body,
      stream,
      ...(apart && { apart }),
      customer,
      paceMs: numbers.STREAM_PACE_MS,
      room: run.room,
    },
    {
      health,
      now,
      signal: run.timer.signal,
      headersMs: stream ? numbers.UPSTREAM_HEADERS_MS : jsonTimeoutMs(run, routes),
      firstMs: numbers.UPSTREAM_FIRST_MS,
      after: run.timers.after,
      onAsked,
      onSpent,
      onFailed: ({ index, attempts }, failure) => {
        const route = routes[index]?.route;
        if (route !== undefined) attemptFailed(run, { route, attempts }, failure);
      },
      mayRetry: () => !run.timer.clientGone,
    },
  );
}

/** A JSON answer comes whole: time for its output at a slow model's pace, at most ten minutes. */
function jsonTimeoutMs(run: Run, routes: readonly CappedRoute[]): number {
  const { UPSTREAM_HEADERS_MS } = run.services.numbers;
  const { apart, body } = run.request;
  const rounds = apart ? Math.ceil(listOf(body["messages"]).length / PROMPTS_AT_ONCE) : 1;
  const tokens = Math.max(0, ...routes.map(({ cap }) => cap ?? 0)) * rounds;
  return Math.max(UPSTREAM_HEADERS_MS, Math.min(JSON_TIMEOUT_MS_MAX, tokens * SLOW_TOKEN_MS));
}

function servingRoute(run: Run, served: Served, routes: readonly CappedRoute[]): ServingRoute {
  const capped = routes[served.index];
  if (capped === undefined) throw new Error("the route that served was not a candidate");
  const firstByteMs = run.services.now() - run.startedMs;
  const { attempts, failed, dropped } = served;
  const serving = { ...routeOf(capped), attempts, dropped, firstByteMs };
  return failed.length === 0 ? serving : { ...serving, failed: failedThere(routes, failed) };
}

function routeOf({
  route,
  cap,
  candidate,
}: CappedRoute): Pick<Asked, "route" | "cap" | "isNative"> {
  return { route, cap, isNative: candidate.native !== undefined };
}

/**
 * Nothing was answered. The client that left while a route was working on its request pays for the
 * input: the upstream does too. So does one whose request kept an answer from being finished for what that
 * has used (of the last such answer). Everybody else pays nothing.
 */
function unanswered(run: Run, failure: Failure, last: Last): Ended {
  const isOwed = last.spent !== null || run.timer.reason === "drained";
  const outcome = isOwed ? owed(run, last) : null;
  return outcome === null ? released(run, failure, failure.kind) : refusing(run, failure, outcome);
}

/** What an unanswered request has used: of the last answer that it spoiled, else the input that was sent. */
function owed(run: Run, { asked, spent }: Last): Outcome | null {
  if (spent === null) return asked === null ? null : inputOnly(run, asked);
  const route = { ...spent.asked, dropped: [], firstByteMs: run.services.now() - run.startedMs };
  const seen = { ...spent.spent, finishReason: null };
  return chargeFor(run, route, seen, { ending: "provoked", readerAway: false });
}

/** Voids the hold, then answers: a client that retries at once finds its credit free again. */
function released(run: Run, failure: Failure, reason: string): Ended {
  return refusing(run, failure, { kind: "void", reason });
}

function refusing(run: Run, failure: Failure, outcome: Outcome): Ended {
  return {
    outcome,
    last: () => {
      run.refuse(toldWith(run, failure, outcome));
      return Promise.resolve(outcome.kind === "settle");
    },
  };
}
