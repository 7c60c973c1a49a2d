import type { Context } from "hono";
import { now } from "../../shared/clock.ts";
import type { Caller } from "../../shared/caller.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { ShedReason, Slot } from "../../shared/in-flight.ts";
import { fail, failUnexpectedly } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { sendResponse } from "./send-response.ts";
import { callRoutes } from "./call-routes.ts";
import { boundRequest } from "./bound-request.ts";
import { boundModels, optionsOf } from "./model-options.ts";
import { deploymentOf } from "./deployment.ts";
import type { ParsedRequest, EndpointAdapter } from "../core/endpoint-adapter.ts";
import { takeGatewayFields } from "../core/gateway-fields.ts";
import { summarizeRequest, recordFailedRequest } from "./failed-requests.route.ts";
import type { RequestSummary } from "./failed-requests.route.ts";
import { hold } from "./hold.ts";
import { homeOf, runServices } from "./home-or-away.route.ts";
import { observe, rejectOverloaded } from "./observe.route.ts";
import { NO_OPEN_CALL } from "./paid-request.ts";
import type { PaidRequest, Run } from "./paid-request.ts";
import { pricingOf } from "./pricing.route.ts";
import { RunTimer } from "./run-timer.ts";
import { abortRun, settle } from "./settle.ts";
import { requestTags, withTags } from "./tags.ts";
import { withTexts } from "./token-texts.route.ts";
import { externalIdProblem } from "../../shared/external-id.ts";
import { idempotencyOf, readIdempotencyKey } from "../../shared/idempotency.ts";
import type { Idempotency } from "../../shared/idempotency.ts";
import { formIdentity } from "../../shared/http/form.ts";
import { BODY_BYTES_MAX, readJsonBody } from "../../shared/http/read-json.ts";
import type { JsonBody } from "../../shared/http/read-json.ts";
import type { RecallResult } from "../../shared/contracts/stored-responses.ts";
import { recallStored } from "./store-response.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";

type Visit = {
  readonly c: Context<AppEnv>;
  readonly door: EndpointAdapter;
  readonly slot: Slot | undefined;
  readonly answered: PromiseWithResolvers<Response>;
  asked: RequestSummary | null;
};

type Read = {
  readonly caller: Caller;
  readonly asked: ParsedRequest;
  /** The Idempotency-Key and body hash; null without a key. */
  readonly idempotency: Idempotency | null;
  readonly bytes: number;
};

type NotRead = Refusal | { readonly ok: false; readonly shed: ShedReason };

/**
 * Handles a paid request at any endpoint, or sheds it. Registers all work with waitUntil first, so
 * that a disconnect leaks neither a hold nor a slot.
 */
export function handlePaidRequest(
  c: Context<AppEnv>,
  door: EndpointAdapter,
): Promise<Response> | Response {
  const slot = c.get("slot");
  if (typeof slot === "string") {
    const shed = fail(c, rejectOverloaded(c, slot).failure);
    recordFailedRequest(c, null, null);
    return shed;
  }
  const answered = Promise.withResolvers<Response>();
  c.executionCtx.waitUntil(toItsEnd({ c, door, slot, answered, asked: null }));
  return answered.promise;
}

/**
 * Runs the paid path, the same for every endpoint. Its seven steps and their calls:
 *
 *     step     at home                                      away from home (a global key)
 *     admit    none yet, or the key object and the wallet   the key object of this region
 *     read     none: the endpoint reads the body            the same
 *     bound    none: model, routes, minimum and maximum     the same
 *     hold     the wallet (which admits a new key)          home: the wallet; sometimes the key object first
 *     call     routes in order until one responds           the same
 *     answer   none: all but the last byte                  the same
 *     settle   the wallet, else the outbox; the last byte   this region's outbox, which calls home; the last byte
 */
async function walk(visit: Visit): Promise<void> {
  const run = await begun(visit);
  if (run === null) return recordFailedRequest(visit.c, visit.asked, null);
  await runPaidRequest(run).catch((error: unknown) =>
    visit.answered.resolve(failUnexpectedly(error, visit.c)),
  );
  observe(visit.c, run, (await visit.answered.promise).status);
  recordFailedRequest(visit.c, visit.asked, run);
  await run.progress.keeping; // keeps the slot until the response is stored
}

/**
 * Runs the steps before the hold. Returns null if the request was rejected. A separate function, so
 * that a long stream doesn't keep its prompt in memory.
 */
async function begun(visit: Visit): Promise<Run | null> {
  const reading = startReading(visit); // while the key is admitted
  const caller = await admit(visit);
  if (!caller.ok) return refused(visit, caller);
  const asked = await read(visit, caller.value, reading);
  if (!asked.ok) return refused(visit, await afterAdmission(visit, asked));
  visit.asked = summarizeRequest(asked.value.asked);
  const request = await bound(visit, asked.value);
  if (!request.ok) return refused(visit, await afterAdmission(visit, request));
  return runOf(visit, { ...asked.value, request: request.value });
}

/** Runs the rest of the path. One promise owns the hold until it ends. */
export async function runPaidRequest(run: Run): Promise<void> {
  try {
    const held = await hold(run);
    if (!held.ok) return run.answer(held.failure);
    const asked = await callRoutes(run, held.value);
    const ended = asked.ok ? await sendResponse(run, asked.route, asked.answer) : asked.ended;
    await settle(run, ended);
  } catch (error) {
    await abortRun(run);
    throw error;
  } finally {
    run.timers.close();
    run.timer.close();
  }
}

async function admit({ c }: Visit): Promise<Result<Caller>> {
  const presumed = c.get("presumed");
  if (presumed !== undefined) return success(presumed.caller);
  const admission = await c.get("admission");
  return admission.ok ? success(admission.value.caller) : admission;
}

function startReading({ c, door, slot }: Visit): Promise<Result<JsonBody>> {
  return readJsonBody(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: c.get("config").numbers.BODY_TIMEOUT_MS,
    after: c.get("timers").after,
    hasRoom: (bytes) => (slot?.grow(bytes) ?? null) === null,
    takesForms: door.takesForms === true,
  });
}

async function read(
  visit: Visit,
  caller: Caller,
  reading: Promise<Result<JsonBody>>,
): Promise<NotRead | { readonly ok: true; readonly value: Read }> {
  const { c, slot } = visit;
  const { orgId, shown } = caller;
  const keyId = shown?.session?.id ?? caller.keyId; // a session doesn't see another's
  const why = slot?.handTo(orgId) ?? null;
  if (why !== null) return { ok: false, shed: why };
  const key = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!key.ok) return key;
  const body = await reading;
  if (!body.ok) return body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
  const { bytes } = body.value;
  const asked = await understood(visit, body.value);
  if (!asked.ok) return asked;
  const named = { keyId, orgId, path: c.req.path, bytes: await identityOf(body.value, key.value) };
  const idempotency = key.value === null ? null : await idempotencyOf(key.value, named);
  return { ok: true, value: { caller, asked: asked.value, idempotency, bytes: bytes.length } };
}

/**
 * Returns the bytes that identify a body, without a form's boundary, which changes with each retry.
 */
async function identityOf({ bytes, form }: JsonBody, key: string | null): Promise<Uint8Array> {
  return form === undefined || key === null ? bytes : formIdentity(form);
}

type Understood = { readonly ok: true; readonly value: ParsedRequest } | NotRead;

async function understood(
  { c, door, slot }: Visit,
  { json, bytes: { length: bytes } }: JsonBody,
): Promise<Understood> {
  const named = door.names?.(json) ?? null;
  if (named === null) return parsed(c, door, { json });
  const admission = await c.get("presumed")?.admit();
  if (admission?.ok === false) return admission;
  const { admitted } = c.var;
  const at = {
    admitted,
    home: homeOf(c, admitted.caller),
    kept: objectsOf(c.env).kept,
    slot,
    bytes,
  };
  const recalled = await recallStored(at, named);
  return recalled.ok ? parsed(c, door, { json, recalled: recalled.value }) : recalled;
}

function parsed(
  c: Context<AppEnv>,
  door: EndpointAdapter,
  { json, recalled }: { readonly json: object; readonly recalled?: RecallResult },
): Result<ParsedRequest> {
  const taken = takeGatewayFields(json);
  if (!taken.ok) return taken;
  const { fields, rest } = taken.value;
  const at = {
    header: (name: string) => c.req.header(name),
    query: (name: string) => c.req.query(name),
    wantsUsage: fields.wantsUsage,
  };
  const asked = door.parse(rest, at, recalled);
  if (!asked.ok) return asked;
  const user = endUserOf(asked.value, c.req.header(END_USER));
  if (!user.ok) return user;
  const tagged = requestTags(json, c.req.header("x-tags"));
  if (!tagged.ok) return tagged;
  const { preferences, fallbacks } = fields;
  const session = fields.session ?? at.header("x-session-id") ?? at.header("x-session-affinity");
  const dropped = [...asked.value.dropped, ...fields.dropped];
  const more = { dropped, preferences, fallbacks, session: session ?? null };
  const request = { ...asked.value, ...more, user: user.value };
  return success(withTags(request, tagged.value));
}

const END_USER = "x-end-user";
const PLAIN = /^[\u0020-\u007e]*$/;

/** Returns the end user from the body or the header `x-end-user`, which must be equal. */
function endUserOf(
  { user, paramOf }: ParsedRequest,
  header: string | undefined,
): Result<string | null> {
  if (header === undefined) return success(user);
  // Other characters depend on the encoding that each side assumes.
  const problem = PLAIN.test(header) ? externalIdProblem(header) : "must be plain ASCII";
  if (problem !== null) return invalid(`x-end-user ${problem}.`, END_USER);
  if (user === null || user === header) return success(header);
  const param = paramOf === undefined ? "user" : paramOf("user");
  return invalid("The body and the header x-end-user name two different end users.", param);
}

/** Finds the model, its capable routes, and the cost bounds. Returns 400 with `param`, or 404. */
async function bound({ c, door }: Visit, { asked, caller }: Read): Promise<Result<PaidRequest>> {
  const { numbers, region } = c.get("config");
  const { catalogAt, providers, providerIds, times } = deploymentOf(c.get("config"));
  const at = now(c.env);
  const catalog = catalogAt(at);
  const admitted = caller.home === region ? c.get("admitted") : undefined;
  const { corrected, current } = pricingOf(c);
  const pricing = await (admitted === undefined
    ? current(caller.orgId, at)
    : corrected(caller.orgId, admitted.priceList ?? null, at));
  if (!pricing.ok) return pricing;
  const defaultCap = door.asksForAll === true ? Infinity : numbers.DEFAULT_MAX_OUTPUT;
  const speedOf = (route: string) => times.speedOf(route);
  const here = { catalog, providers, providerIds, speedOf };
  const sold = { ...here, defaultCap, pricing: pricing.value };
  const request = boundModels(asked, sold);
  if (!request.ok || asked.request.kind === "chat") return request;
  const texts = await withTexts(c, asked, { routes: request.value.routes, providers });
  if (texts === null) return request;
  return texts.ok ? boundRequest(texts.value, sold) : texts;
}

/**
 * Rejects a request without a hold. Admits a presumed key first, so that the request counts and a
 * revoked key gets its 401.
 */
async function afterAdmission({ c }: Visit, refusal: NotRead): Promise<NotRead> {
  const admission = await c.get("presumed")?.admit();
  return admission === undefined || admission.ok ? refusal : admission;
}

function refused({ c, answered }: Visit, refusal: NotRead): null {
  const { failure } = "shed" in refusal ? rejectOverloaded(c, refusal.shed) : refusal;
  answered.resolve(fail(c, failure));
  return null;
}

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

type BoundRequest = Omit<Read, "asked"> & { readonly request: PaidRequest };

function runOf({ c, door, answered, slot }: Visit, known: BoundRequest): Run {
  const { caller, idempotency, request, bytes: bodyBytes } = known;
  const timers = c.get("timers");
  const services = runServices(c, caller);
  const { REQUEST_DEADLINE_S, DRAIN_S, DRAIN_THINKING_S } = services.numbers;
  const thinks = optionsOf(request).some(({ mayThink }) => mayThink);
  const isTranscription = request.core?.kind === "transcription";
  const isSlow = thinks || isTranscription || (request.stream && request.cap === null);
  const drainS = isSlow ? Math.max(DRAIN_S, DRAIN_THINKING_S) : DRAIN_S;
  const limits = { deadlineMs: REQUEST_DEADLINE_S * 1000, drainMs: drainS * 1000 };
  const progress = { ...NO_OPEN_CALL, admitted: c.get("admitted") ?? null };
  c.set("logged", true); // its log line comes after its charge
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
