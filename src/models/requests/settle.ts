import type { Generation } from "../../shared/generation.ts";
import type { Micros } from "../../shared/money.ts";
import { micros } from "../../shared/money.ts";
import { logEvent, errorMessageOf } from "../../shared/log.ts";
import type { SettleResult } from "../../shared/contracts/wallet.ts";
import type { OutcomeItem } from "../../shared/contracts/outbox.ts";
import { formatRouteName } from "../routing/route-health.ts";
import { getPromptCacheSeconds } from "./affinity.ts";
import { tagsWithSession } from "../../shared/tags.ts";
import { listSkippedRoutes } from "./model-options.ts";
import { storeResponse } from "./store-response.ts";
import { EXCEPTION_OUTCOME, addChargeToFailure } from "./charge.ts";
import type {
  Charge,
  EndedResponse,
  Outcome,
  Release,
  Run,
  SettledRun,
  OutcomeSaveResult,
} from "./paid-request.ts";
import { callObjectWithRetries } from "../../shared/reach-object.ts";
import { toStorageFailure } from "../../shared/storage-failure.ts";
import { withTimeout } from "../../shared/timers.ts";

const OUTBOX_TIMEOUT_MS = 1000;
const RETRY_PAUSE_MS = 2000;
/** Maximum ms of an attempt: 2 s for the wallet plus 2 s for the outbox. */
const ATTEMPT_MS_MAX = 4000;
/**
 * Ms from the response or disconnect until an unsaved charge is logged. The platform ends a request
 * after 30 s.
 */
const UNSAVED_LOG_MS = 28_500;

/**
 * Settles a run, then sends the rest of its response. Retries an unconfirmed charge, then logs it.
 */
export async function settleAndRespond(run: Run, ended: EndedResponse): Promise<void> {
  const { outcome } = ended;
  const settledRun = await settleRun(run, outcome);
  const isSent = await ended.sendRest(settledRun);
  if (isSent) storeResponse(run, ended);
  if (isSent && settledRun.stored !== "saved") await retryCharge(run, outcome);
}

/**
 * Ends a run after a bug. Charges a provider call as if the client had disconnected. Doesn't
 * replace an outcome that may be stored, because the new outcome could reach the wallet first.
 */
export async function abortRun(run: Run): Promise<void> {
  const { progress } = run;
  progress.isBroken = true;
  run.timer.stop();
  if (progress.stored === null || progress.stored === "refused") await settleAfterBug(run);
  const outcome = progress.outcome ?? EXCEPTION_OUTCOME;
  const failure = addChargeToFailure(run, { kind: "internal" }, outcome);
  run.respond(failure);
  await progress.open?.close(failure);
  if (outcome.kind === "settle" && progress.stored !== "saved") await retryCharge(run, outcome);
}

async function settleAfterBug(run: Run): Promise<void> {
  try {
    await settleRun(run, run.progress.open?.outcomeIfAborted() ?? EXCEPTION_OUTCOME);
  } catch {
    await settleRun(run, EXCEPTION_OUTCOME);
  }
}

/**
 * Settles a hold in the wallet, or else through this region's outbox. Runs before the last byte is
 * sent, so that a complete response is charged even if the Worker then crashes.
 */
async function settleRun(run: Run, outcome: Outcome): Promise<SettledRun> {
  const { progress } = run;
  progress.outcome = outcome;
  const settledRun =
    outcome.kind === "void" ? await voidRun(run, outcome) : await storeCharge(run, outcome);
  progress.stored = settledRun.stored;
  progress.charged = settledRun.stored === "refused" ? micros(0) : settledRun.charged;
  return settledRun;
}

async function storeCharge(run: Run, outcome: Charge): Promise<SettledRun> {
  const { cost } = outcome;
  const generation = generationOf(run, outcome);
  const { orgId } = run.caller;
  const { wallet } = run.services;
  let mayBeStored = false;
  if (wallet !== null) {
    const settlement = { id: run.id, cost, generation };
    const walletCall = await callObjectWithRetries(
      (attempt) => wallet(orgId, attempt).settle(settlement),
      { after: run.timers.after },
    );
    if (!walletCall.unanswered && walletCall.result.ok) {
      return { stored: "saved", charged: chargedMicro(run, walletCall.result.value) };
    }
    mayBeStored = walletCall.unanswered;
  }
  // The response reports this cost before the wallet charges it, so the charge can't exceed the
  // hold.
  const isCapped = run.progress.granted !== null;
  const item = { holdId: run.id, orgId, kind: "settle", cost, generation, isCapped } as const;
  const stored = await enqueue(run, item);
  const charged = micros(Math.min(cost, run.progress.granted ?? cost));
  return { stored: mayBeStored && stored === "refused" ? "unknown" : stored, charged };
}

/**
 * Retries the charge of a sent response, then logs it for the operator. The platform allows 30 s
 * from the disconnect or the response.
 */
async function retryCharge(run: Run, outcome: Outcome): Promise<void> {
  const { now } = run.services;
  const untilMs = (run.timer.disconnectedAtMs ?? now()) + UNSAVED_LOG_MS;
  while (now() + RETRY_PAUSE_MS + ATTEMPT_MS_MAX <= untilMs) {
    await scheduler.wait(RETRY_PAUSE_MS);
    if ((await settleRun(run, outcome)).stored === "saved") return;
  }
  if (outcome.kind === "void") return;
  run.progress.isUnsaved = true;
  logEvent("settlement_unsaved", {
    request_id: run.id,
    org_id: run.caller.orgId,
    cost_micro: outcome.cost,
    generation: generationOf(run, outcome),
  });
}

async function voidRun(run: Run, { reason, lost }: Release): Promise<SettledRun> {
  const absorbedGeneration = lost === undefined ? null : generationOf(run, lost);
  const stored = (await voidInWallet(run, absorbedGeneration))
    ? "saved"
    : await voidHoldThroughOutbox(run, absorbedGeneration);
  logEvent("hold_voided", { request_id: run.id, reason });
  return { stored, charged: micros(0) };
}

export function voidHoldThroughOutbox(
  run: Run,
  absorbedGeneration: Generation | null = null,
): Promise<OutcomeSaveResult> {
  const { orgId } = run.caller;
  const voidItem = { kind: "void", cost: micros(0), generation: absorbedGeneration } as const;
  return enqueue(run, { holdId: run.id, orgId, ...voidItem });
}

async function voidInWallet(run: Run, absorbedGeneration: Generation | null): Promise<boolean> {
  const { wallet } = run.services;
  if (wallet === null) return false;
  const { after } = run.timers;
  const { orgId } = run.caller;
  const walletCall = await callObjectWithRetries(
    (attempt) => wallet(orgId, attempt).void(run.id, absorbedGeneration),
    { after },
  );
  return !walletCall.unanswered && walletCall.result.ok;
}

/**
 * Returns `saved` once this region's outbox has stored the outcome. Returns `refused` only after an
 * overload. After other failures, the outbox may have stored the outcome.
 */
async function enqueue(run: Run, item: OutcomeItem): Promise<OutcomeSaveResult> {
  const { outbox } = run.services;
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      const stored = outbox(run.caller, attempt).enqueue([item]);
      await withTimeout(stored, OUTBOX_TIMEOUT_MS, run.timers.after);
      return "saved";
    } catch (error) {
      logEvent("outbox_unreachable", {
        request_id: run.id,
        attempt,
        reason: errorMessageOf(error),
      });
      if (toStorageFailure(error).kind !== "overloaded") continue;
      return attempt === 1 ? "refused" : "unknown";
    }
  }
  return "unknown";
}

function chargedMicro(run: Run, answer: SettleResult): Micros {
  if (answer.kind === "settled") {
    run.progress.shortfall = answer.shortfall;
    return answer.charged;
  }
  logEvent("settle_without_hold", {
    request_id: run.id,
    org_id: run.caller.orgId,
    found: answer.kind,
  });
  return micros(0);
}

/**
 * Returns the failed attempts except the charged one. Absorbed bills are only in these attempts'
 * records.
 */
function otherAttempts(
  { progress: { attempts } }: Run,
  { route: { failed = [] } }: Charge,
): Pick<Generation, "failed"> {
  const timedAttempts = attempts.slice(0, failed.length);
  const before = timedAttempts.length === failed.length ? timedAttempts : failed;
  const all = [...before, ...attempts.slice(failed.length + 1)];
  return all.length === 0 ? {} : { failed: all };
}

/**
 * Returns the fallback route that served the request, because its provider now caches the prompt.
 */
function warmRouteFields(
  { request: { conversationHash, prompt } }: Run,
  { route: { isFallback, route } }: Charge,
): Pick<Generation, "warm"> {
  if (conversationHash === null || isFallback !== true) return {};
  const seconds = getPromptCacheSeconds(route.provider, prompt);
  return { warm: { affinity: conversationHash, route: formatRouteName(route), seconds } };
}

function generationOf(run: Run, outcome: Charge): Generation {
  return {
    model: run.request.model.id,
    provider: outcome.route.route.provider,
    region: run.services.region,
    keyId: run.caller.keyId,
    streamed: run.request.stream,
    usage: outcome.usage,
    price: outcome.price,
    ...(outcome.origin !== undefined && { origin: outcome.origin }),
    ...(outcome.bought !== undefined && { bought: outcome.bought }),
    firstByteMs: outcome.route.firstByteMs,
    durationMs: run.services.now() - run.startedMs,
    estimated: outcome.estimated,
    finishReason: outcome.finishReason,
    ...tagsWithSession(run.request.tags, run.caller.shown?.session),
    ...(run.request.trace !== undefined && { trace: run.request.trace }),
    ...(run.request.model.kind !== "chat" && { kind: run.request.model.kind }),
    ...warmRouteFields(run, outcome),
    ...otherAttempts(run, outcome),
    ...listSkippedRoutes(run),
  };
}
