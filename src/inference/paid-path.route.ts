import type { Context } from "hono";
import { now } from "../lib/clock.ts";
import type { Caller } from "../lib/caller.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import type { Slot } from "../lib/in-flight.ts";
import { fail, failUnexpectedly } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { answer } from "./answer.ts";
import { ask } from "./ask.ts";
import { bounded } from "./bound.ts";
import { deploymentOf } from "./deployment.ts";
import type { Door } from "../core/door.ts";
import { askedFor, noteFailed } from "./failed-requests.route.ts";
import type { AskedFor } from "./failed-requests.route.ts";
import { hold } from "./hold.ts";
import { runServices } from "./home-or-away.route.ts";
import { observe } from "./observe.route.ts";
import { overloaded } from "./overload.route.ts";
import { NOTHING_YET } from "./paid-request.ts";
import type { PaidRequest, Run } from "./paid-request.ts";
import { pricingOf } from "./pricing.route.ts";
import { read, startReading } from "./read.route.ts";
import type { NotRead, Read } from "./read.route.ts";
import { RunTimer } from "./run-timer.ts";
import { breakOff, settle } from "./settle.ts";
import { withTexts } from "./token-texts.route.ts";

/** One request on the path, before it is known what it asks. `slot`: none for a key that is none. */
export type Visit = {
  readonly c: Context<AppEnv>;
  readonly door: Door;
  readonly slot: Slot | undefined;
  readonly answered: PromiseWithResolvers<Response>;
  /** What it asks for, once its body is understood. */
  asked: AskedFor | null;
};

/**
 * Answers a paid request at any door, or sheds it. Its whole way is registered with waitUntil before it
 * reads or holds anything: a client that leaves cannot strand a hold, nor a place among those in flight.
 */
export function answerPaid(c: Context<AppEnv>, door: Door): Promise<Response> | Response {
  const slot = c.get("slot");
  if (typeof slot === "string") {
    const shed = fail(c, overloaded(c, slot).failure);
    noteFailed(c, null, null);
    return shed;
  }
  const answered = Promise.withResolvers<Response>();
  c.executionCtx.waitUntil(toItsEnd({ c, door, slot, answered, asked: null }));
  return answered.promise;
}

/**
 * THE PATH of a paid request, the same at every door. Its seven steps, and whom they ask:
 *
 *     step     at home                                      away from home (a global key)
 *     admit    nobody yet, or the key's register and wallet  the key's register here
 *     read     nobody: the body, by its door                the same
 *     bound    nobody: model, routes, least and most cost   the same
 *     hold     the wallet (which admits who is not yet)     home: the wallet; now and then its register first
 *     ask      routes in their order, until one answers     the same
 *     answer   nobody: all but the last byte                the same
 *     settle   the wallet, else the outbox; the last byte   the outbox here, which tells home; the last byte
 */
async function walk(visit: Visit): Promise<void> {
  const run = await begun(visit);
  if (run === null) return noteFailed(visit.c, visit.asked, null);
  await pay(run).catch((error: unknown) =>
    visit.answered.resolve(failUnexpectedly(error, visit.c)),
  );
  observe(visit.c, run, (await visit.answered.promise).status);
  noteFailed(visit.c, visit.asked, run);
  await run.progress.keeping; // its place is held for what it still keeps
}

/**
 * Up to where there is money in it; null where it was refused. A function of its own: what it has read is let go
 * with it, and a long stream does not keep its prompt.
 */
async function begun(visit: Visit): Promise<Run | null> {
  const reading = startReading(visit); // while the key is admitted
  const caller = await admit(visit);
  if (!caller.ok) return refused(visit, caller);
  const asked = await read(visit, caller.value, reading);
  if (!asked.ok) return refused(visit, await afterAdmission(visit, asked));
  visit.asked = askedFor(asked.value.asked);
  const request = await bound(visit, asked.value);
  if (!request.ok) return refused(visit, await afterAdmission(visit, request));
  return runOf(visit, { ...asked.value, request: request.value });
}

/** The rest of the path, from where there is money in it. One promise owns the hold to its end. */
export async function pay(run: Run): Promise<void> {
  try {
    const held = await hold(run);
    if (!held.ok) return run.answer(held.failure);
    const asked = await ask(run, held.value);
    const ended = asked.ok ? await answer(run, asked.route, asked.answer) : asked.ended;
    await settle(run, ended);
  } catch (error) {
    await breakOff(run);
    throw error;
  } finally {
    run.timers.close();
    run.timer.close();
  }
}

/** Whose request it is: as far as this isolate knows, or as the key's register and wallet say. */
async function admit({ c }: Visit): Promise<Result<Caller>> {
  const presumed = c.get("presumed");
  if (presumed !== undefined) return success(presumed.caller);
  const admission = await c.get("admission");
  return admission.ok ? success(admission.value.caller) : admission;
}

/** The model, the routes that can do it at the prices of this moment, and what it can cost: 400 with `param`, 404. */
async function bound({ c, door }: Visit, { asked, caller }: Read): Promise<Result<PaidRequest>> {
  const { numbers, region } = c.get("config");
  const { catalogAt, providers } = deploymentOf(c.get("config"));
  const at = now(c.env);
  const catalog = catalogAt(at);
  const admitted = caller.home === region ? c.get("admitted") : undefined;
  const { corrected, current } = pricingOf(c);
  const pricing = await (admitted === undefined
    ? current(caller.orgId, at)
    : corrected(caller.orgId, admitted.priceList ?? null, at));
  if (!pricing.ok) return pricing;
  const defaultCap = door.asksForAll === true ? Infinity : numbers.DEFAULT_MAX_OUTPUT;
  const sold = { catalog, providers, defaultCap, pricing: pricing.value };
  const request = bounded(asked, sold);
  if (!request.ok || asked.request.kind === "chat") return request;
  const texts = await withTexts(c, asked, { routes: request.value.routes, providers });
  if (texts === null) return request;
  return texts.ok ? bounded(texts.value, sold) : texts;
}

/**
 * Why a request is refused that never came to a hold. One that is only presumed to be admitted is admitted
 * first: it counts, and a dead key is told so before anything else.
 */
async function afterAdmission({ c }: Visit, refusal: NotRead): Promise<NotRead> {
  const admission = await c.get("presumed")?.admit();
  return admission === undefined || admission.ok ? refusal : admission;
}

function refused({ c, answered }: Visit, refusal: NotRead): null {
  const { failure } = "shed" in refusal ? overloaded(c, refusal.shed) : refusal;
  answered.resolve(fail(c, failure));
  return null;
}

/** The whole way, with whatever it throws answered; then its place is free. */
async function toItsEnd(visit: Visit): Promise<void> {
  const { c, answered, slot } = visit;
  try {
    await walk(visit);
  } catch (error) {
    answered.resolve(failUnexpectedly(error, c));
  } finally {
    c.get("timers").close();
    slot?.release();
  }
}

type Known = Omit<Read, "asked"> & { readonly request: PaidRequest };

function runOf({ c, door, answered, slot }: Visit, known: Known): Run {
  const { caller, idempotency, request, bytes: bodyBytes } = known;
  const timers = c.get("timers");
  const services = runServices(c, caller);
  const { REQUEST_DEADLINE_S, DRAIN_S } = services.numbers;
  const limits = { deadlineMs: REQUEST_DEADLINE_S * 1000, drainMs: DRAIN_S * 1000 };
  const progress = { ...NOTHING_YET, admitted: c.get("admitted") ?? null };
  c.set("logged", true); // its line comes after its charge
  return {
    id: c.get("requestId"),
    startedMs: c.get("startedMs"),
    door,
    caller,
    isPresumed: c.get("presumed")?.admission === null,
    idempotency,
    request,
    bodyBytes,
    progress,
    timers,
    timer: new RunTimer(c.req.raw.signal, timers, { ...limits, now: services.now }),
    services,
    slot,
    answer: (told) => {
      if (progress.admitted !== null) c.set("admitted", progress.admitted);
      answered.resolve(told instanceof Response ? told : fail(c, told));
    },
  };
}
