import type { Context, Next } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { keyOwnerCacheOf } from "../../accounts/keys/admission.route.ts";
import { internalCallers } from "../../accounts/keys/internal-caller.ts";
import { createRequestCredential } from "../../shared/caller.ts";
import type { Caller } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { withTimeout } from "../../shared/timers.ts";
import type { TimerFunction, Timers } from "../../shared/timers.ts";
import { metricRecorderOf } from "../../events/metrics/count-requests.route.ts";
import { ownOutboxName, peerOutboxName } from "../../regions/outbox-schedule.ts";
import { authorizeAtHome } from "./authorize.ts";
import { pickCallerTerms, readCallerTerms, readOrganizationTerms } from "./caller-terms.route.ts";
import type { CallerTerms } from "./caller-terms.route.ts";
import { getDeployment } from "./deployment.ts";
import { callStoredResponsesAtHome } from "./stored-format.ts";
import type { HomeClient, OutboxGetter, Run, RunServices, WalletGetter } from "./paid-request.ts";
import {
  STOP_QUERY_TIMEOUT_MS,
  LongRuns,
  parseStoppedRequests,
  stopQueryToJson,
  watchRun,
} from "./run-watch.ts";
import type { FindRequestsToStop } from "./run-watch.ts";
import { callPeer } from "../../regions/peer-call.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import { getPricingLookup } from "./pricing.route.ts";
import { getOverloadCounters } from "./observe.route.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import type { Config } from "../../shared/config/config.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import { CallGroups } from "../../shared/call-groups.ts";
import type { OutcomeItem } from "../../shared/contracts/outbox.ts";
import { WalletCallGroups } from "../../money/wallet/grouped-wallet.ts";

/** Returns a client of the key's home region, or null at home. */
export function createHomeClient(
  c: Context<AppEnv>,
  caller: Caller,
  after?: TimerFunction,
): HomeClient | null {
  const config = c.get("config");
  if (caller.home === config.region) return null;
  const peer = config.peers.find(({ region }) => region === caller.home);
  const credential = createRequestCredential(caller.keyHash, caller.shown);
  const { env } = c;
  const [requestId, spentMs] = [c.get("requestId"), c.get("admissionMs")];
  const at = { requestId, now: () => now(env), spentMs, ...(after !== undefined && { after }) };
  return {
    authorize: (hold) => authorizeAtHome(peer, { ...credential, hold }, at),
    callStoredResponses: (request) =>
      callStoredResponsesAtHome(peer, { called: credential, ...request }, at),
  };
}

/**
 * Returns a run's services. Each object call creates a new stub, because a stub never works again
 * after a failure.
 */
export function createRunServices(c: Context<AppEnv>, caller: Caller): RunServices {
  const { env } = c; // Capturing `c` would keep the request in memory.
  const [config, timers] = [c.get("config"), c.get("timers")];
  const { region, numbers } = config;
  const { providers, health, times } = getDeployment(config);
  const home = createHomeClient(c, caller, timers.after);
  const outboxes = createOutboxGetter(config, env, timers.after);
  const localServices = {
    providers,
    health,
    times,
    tally: metricRecorderOf(config).tally,
    callers: keyOwnerCacheOf(config),
    sheds: getOverloadCounters(config),
    keysNeedingCandidates: Isolate.of(config).get(makeKeySet),
    region,
    numbers,
    now: () => now(env),
    corrected: getPricingLookup(c).corrected,
    kept: objectsOf(env).kept,
    outbox: (owner: Pick<Caller, "orgId" | "keyId">, attempt: number) =>
      outboxes(home === null ? ownOutboxName(owner) : peerOutboxName(caller.home, owner), attempt),
  };
  if (home !== null) return { ...localServices, home, wallet: null };
  return { ...localServices, home, wallet: createWalletGetter(config, env, timers.after) };
}

const makeBoard = (): LongRuns => new LongRuns();

/** Watches a run until its end, so that a pause can stop the run. */
export function watchPaidRun(
  c: Context<AppEnv>,
  run: Pick<Run, "id" | "caller" | "timers" | "timer">,
): void {
  const board = Isolate.of(c.get("config")).get(makeBoard);
  const { executionCtx } = c;
  const findStoppedRuns = makeStopQuery(c, run.caller, run.timers);
  watchRun({
    ...run,
    board,
    ask: findStoppedRuns,
    waitUntil: (work) => executionCtx.waitUntil(work),
  });
}

function makeStopQuery(
  c: Context<AppEnv>,
  { home, orgId }: Caller,
  { after }: Timers,
): FindRequestsToStop {
  const { env } = c; // Capturing `c` would keep the request in memory.
  const [config, requestId] = [c.get("config"), c.get("requestId")];
  return async (runs) => {
    if (home === config.region) {
      const stops = await withTimeout(
        objectsOf(env).wallet(orgId).watch(runs),
        STOP_QUERY_TIMEOUT_MS,
        after,
      );
      if (!stops.ok) throw new Error(stops.failure.kind);
      return stops.value;
    }
    const peer = config.peers.find(({ region }) => region === home);
    const at = {
      requestId,
      now: () => now(env),
      budgetMs: STOP_QUERY_TIMEOUT_MS,
      attempts: 1,
      after,
    };
    const body = stopQueryToJson(orgId, runs);
    const answer = peer === undefined ? null : await callPeer(peer, "watch", body, at);
    const stops = parseStoppedRequests(answer?.body);
    if (stops === null) throw new Error("no answer from the home region");
    return stops;
  };
}

/**
 * Middleware for free requests. Checks a global key in its home region. If no wallet has admitted
 * the caller, reads the limits that apply. Returns 503 if home or the wallet is unreachable.
 */
export async function requireActiveKeyAtHome(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  const { admitted, config } = c.var;
  const { keyHash: hash, shown } = admitted.caller;
  const read = await readMissingTerms(c);
  if (read?.unanswered === true) return fail(c, read.failure);
  if (read?.result.ok === false) {
    keyOwnerCacheOf(config).recordRefusal({ hash, shown }, read.result.failure);
    return fail(c, read.result.failure);
  }
  if (read?.result.ok === true) {
    c.set("admitted", { ...admitted, ...pickCallerTerms(read.result.value) });
  }
  await next();
  return undefined;
}

async function readMissingTerms(
  c: Context<AppEnv>,
): Promise<ObjectCallResult<CallerTerms> | undefined> {
  const { caller } = c.var.admitted;
  if (!internalCallers.has(c.req.raw)) {
    return createHomeClient(c, caller)?.authorize(null);
  }
  const { keyHash, orgId, shown, viewer } = caller; // Console calls run in the home region.
  return viewer === undefined
    ? readCallerTerms(c, orgId, createRequestCredential(keyHash, shown))
    : { unanswered: false, result: await readOrganizationTerms(c, orgId) };
}

const makeKeySet = (): Set<string> => new Set();

const makeCallGroups = () => {
  return {
    wallets: new WalletCallGroups(),
    outboxes: new CallGroups<readonly OutcomeItem[], null>(),
  };
};

export function createWalletGetter(config: Config, env: Env, after: TimerFunction): WalletGetter {
  const { wallets } = Isolate.of(config).get(makeCallGroups);
  return (orgId, attempt) => {
    const stub = () => objectsOf(env).wallet(orgId);
    return attempt === 1 ? wallets.walletOf(orgId, stub, after) : stub();
  };
}

const STORED_RESULT = { kind: "answered", answer: null } as const;

export function createOutboxGetter(config: Config, env: Env, after: TimerFunction): OutboxGetter {
  const { outboxes } = Isolate.of(config).get(makeCallGroups);
  return (name, attempt) => {
    const stub = () => objectsOf(env).outbox(name);
    if (attempt > 1) return stub();
    return {
      enqueue: (part) =>
        outboxes.callPart(name, {
          part,
          callAlone: () =>
            stub()
              .enqueue(part)
              .then(() => null),
          callTogether: (parts) =>
            stub()
              .enqueue(parts.flat())
              .then(() => parts.map(() => STORED_RESULT)),
          after,
        }),
    };
  };
}
