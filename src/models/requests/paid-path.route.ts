import type { Context } from "hono";
import { now } from "../../shared/clock.ts";
import type { Caller } from "../../shared/caller.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { OverloadReason, RequestSlot } from "../../shared/in-flight.ts";
import { fail, respondToUnexpectedError } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { sendResponse } from "./send-response.ts";
import { callRoutes } from "./call-routes.ts";
import { computeRequestBounds, withClientParam } from "./bound-request.ts";
import { computeModelBounds, getModelOptions } from "./model-options.ts";
import { getDeployment } from "./deployment.ts";
import type { ParsedRequest, EndpointAdapter } from "../core/endpoint-adapter.ts";
import { isOpenRouterClient, splitGatewayFields } from "../core/gateway-fields.ts";
import { summarizeRequest, recordFailedRequest } from "./failed-requests.route.ts";
import type { RequestSummary } from "./failed-requests.route.ts";
import { holdCredits } from "./hold.ts";
import { createHomeClient, createRunServices, watchPaidRun } from "./home-or-away.route.ts";
import { observeRun, rejectOverloaded } from "./observe.route.ts";
import { RunProgress } from "./paid-request.ts";
import type { PaidRequest, Run } from "./paid-request.ts";
import { getPricingLookup } from "./pricing.route.ts";
import { RunTimer } from "./run-timer.ts";
import { abortRun, settleAndRespond } from "./settle.ts";
import { readRequestTags, addTagsToRequest } from "./tags.ts";
import { parseTraceparent } from "../../shared/traceparent.ts";
import { decodeTokenInput } from "./token-texts.route.ts";
import { isSlowCallKind } from "../../shared/kinds.ts";
import { findExternalIdProblem } from "../../shared/external-id.ts";
import { hashIdempotentRequest, readIdempotencyKey } from "../../shared/idempotency.ts";
import type { IdempotencyHashes } from "../../shared/idempotency.ts";
import { serializeFormForHash } from "../../shared/http/form.ts";
import { BODY_BYTES_MAX, readJsonBody } from "../../shared/http/read-json.ts";
import type { JsonBody } from "../../shared/http/read-json.ts";
import type { StoredResponseResult } from "../../shared/contracts/stored-responses.ts";
import { recallStoredResponses } from "./store-response.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";

type PaidRequestContext = {
  readonly c: Context<AppEnv>;
  readonly endpoint: EndpointAdapter;
  readonly slot: RequestSlot | undefined;
  readonly pendingResponse: PromiseWithResolvers<Response>;
  summary: RequestSummary | null;
};

type ReadRequest = {
  readonly caller: Caller;
  readonly parsed: ParsedRequest;
  readonly idempotency: IdempotencyHashes | null;
  readonly bytes: number;
};

type Rejection = Refusal | { readonly ok: false; readonly shed: OverloadReason };

/**
 * Handles a paid request. First registers all work with waitUntil, so that a disconnect can't leave
 * a hold or a slot open.
 */
export function handlePaidRequest(
  c: Context<AppEnv>,
  endpoint: EndpointAdapter,
): Promise<Response> | Response {
  const slot = c.get("slot");
  if (typeof slot === "string") {
    const response = fail(c, rejectOverloaded(c, slot).failure);
    recordFailedRequest(c, null, null);
    return response;
  }
  const pendingResponse = Promise.withResolvers<Response>();
  c.executionCtx.waitUntil(runAndRelease({ c, endpoint, slot, pendingResponse, summary: null }));
  return pendingResponse.promise;
}

/**
 * Runs the seven steps of the paid path, the same for every endpoint: admit, read, bound, hold,
 * call, respond, settle. `src/README.md` lists their calls to objects and other regions.
 */
async function runPaidPath(context: PaidRequestContext): Promise<void> {
  const run = await prepareRun(context);
  if (run === null) return recordFailedRequest(context.c, context.summary, null);
  await runPaidRequest(run).catch((error: unknown) =>
    context.pendingResponse.resolve(respondToUnexpectedError(error, context.c)),
  );
  observeRun(context.c, run, (await context.pendingResponse.promise).status);
  recordFailedRequest(context.c, context.summary, run);
  await run.progress.storing; // The request keeps its slot until the response is stored.
}

/**
 * Runs the steps before the hold. A separate function, so that the prompt doesn't stay in memory
 * during a long stream.
 */
async function prepareRun(context: PaidRequestContext): Promise<Run | null> {
  const bodyRead = startReading(context); // Runs in parallel with the admission.
  const caller = await admit(context);
  if (!caller.ok) return refuseRequest(context, caller);
  const read = await readRequest(context, caller.value, bodyRead);
  if (!read.ok) return refuseRequest(context, await rejectAfterAdmission(context, read));
  context.summary = summarizeRequest(read.value.parsed);
  const request = await computeBounds(context, read.value);
  if (!request.ok) return refuseRequest(context, await rejectAfterAdmission(context, request));
  return createRun(context, { ...read.value, request: request.value });
}

/** Runs the steps from the hold on. Returns only after the hold has ended. */
export async function runPaidRequest(run: Run): Promise<void> {
  try {
    const routes = await holdCredits(run);
    if (!routes.ok) return run.respond(withClientParam(routes, run.request).failure);
    const response = await callRoutes(run, routes.value);
    const ended = response.ok
      ? await sendResponse(run, response.route, response.answer)
      : response.ended;
    await settleAndRespond(run, ended);
  } catch (error) {
    await abortRun(run);
    throw error;
  } finally {
    run.timers.close();
    run.timer.close();
  }
}

async function admit({ c }: PaidRequestContext): Promise<Result<Caller>> {
  const presumed = c.get("presumed");
  if (presumed !== undefined) return success(presumed.caller);
  const admission = await c.get("admission");
  return admission.ok ? success(admission.value.caller) : admission;
}

function startReading({ c, endpoint, slot }: PaidRequestContext): Promise<Result<JsonBody>> {
  return readJsonBody(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: c.get("config").numbers.BODY_TIMEOUT_MS,
    after: c.get("timers").after,
    hasRoom: (bytes) => (slot?.grow(bytes) ?? null) === null,
    acceptsForms: endpoint.takesForms === true,
  });
}

async function readRequest(
  context: PaidRequestContext,
  caller: Caller,
  bodyRead: Promise<Result<JsonBody>>,
): Promise<Rejection | { readonly ok: true; readonly value: ReadRequest }> {
  const { c, slot } = context;
  const { orgId, shown } = caller;
  const keyId = shown?.session?.id ?? caller.keyId; // Sessions don't share idempotency keys.
  const why = slot?.assignToOrganization(orgId) ?? null;
  if (why !== null) return { ok: false, shed: why };
  const key = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!key.ok) return key;
  const body = await bodyRead;
  if (!body.ok) return body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
  const { bytes } = body.value;
  const parsed = await parseBody(context, body.value);
  if (!parsed.ok) return parsed;
  const idempotentRequest = {
    keyId,
    orgId,
    path: c.req.path,
    bytes: await bodyIdentity(body.value, key.value),
  };
  const idempotency =
    key.value === null ? null : await hashIdempotentRequest(key.value, idempotentRequest);
  return { ok: true, value: { caller, parsed: parsed.value, idempotency, bytes: bytes.length } };
}

/**
 * Returns the bytes that identify the body. Excludes a form's boundary, which differs in each
 * retry.
 */
async function bodyIdentity({ bytes, form }: JsonBody, key: string | null): Promise<Uint8Array> {
  return form === undefined || key === null ? bytes : serializeFormForHash(form);
}

async function parseBody(
  { c, endpoint, slot }: PaidRequestContext,
  { json, bytes: { length: bytes } }: JsonBody,
): Promise<{ readonly ok: true; readonly value: ParsedRequest } | Rejection> {
  const storedIds = endpoint.storedIdsOf?.(json) ?? null;
  if (storedIds === null) return parseEndpointRequest(c, endpoint, { json });
  const admission = await c.get("presumed")?.admitCaller();
  if (admission?.ok === false) return admission;
  const { admitted } = c.var;
  const at = {
    admitted,
    home: createHomeClient(c, admitted.caller),
    kept: objectsOf(c.env).kept,
    slot,
    bytes,
  };
  const recalled = await recallStoredResponses(at, storedIds);
  return recalled.ok
    ? parseEndpointRequest(c, endpoint, { json, recalled: recalled.value })
    : recalled;
}

function parseEndpointRequest(
  c: Context<AppEnv>,
  endpoint: EndpointAdapter,
  { json, recalled }: { readonly json: object; readonly recalled?: StoredResponseResult },
): Result<ParsedRequest> {
  const gatewayFields = splitGatewayFields(json);
  if (!gatewayFields.ok) return gatewayFields;
  const { fields, rest } = gatewayFields.value;
  const header = (name: string) => c.req.header(name);
  const at = {
    header,
    query: (name: string) => c.req.query(name),
    wantsUsage: fields.wantsUsage || isOpenRouterClient({ header }),
  };
  const parsed = endpoint.parse(rest, at, recalled);
  if (!parsed.ok) return parsed;
  const user = endUserOf(parsed.value, c.req.header(END_USER_HEADER));
  if (!user.ok) return user;
  const tagged = readRequestTags(json, c.req.header("x-tags"));
  if (!tagged.ok) return tagged;
  const { preferences, fallbacks } = fields;
  const session = fields.session ?? at.header("x-session-id") ?? at.header("x-session-affinity");
  const dropped = [...parsed.value.dropped, ...fields.dropped];
  const trace = parseTraceparent(at.header("traceparent"));
  const extraFields = { dropped, preferences, fallbacks, session: session ?? null, trace };
  const request = { ...parsed.value, ...extraFields, user: user.value };
  return success(addTagsToRequest(request, tagged.value));
}

const END_USER_HEADER = "x-end-user";
const PRINTABLE_ASCII = /^[\u0020-\u007e]*$/;

/**
 * Returns the end user from the body or the header `x-end-user`. If both are set, they must be
 * equal.
 */
function endUserOf(
  { user, paramOf }: ParsedRequest,
  header: string | undefined,
): Result<string | null> {
  if (header === undefined) return success(user);
  // Client and server could decode non-ASCII characters differently.
  const problem = PRINTABLE_ASCII.test(header)
    ? findExternalIdProblem(header)
    : "must be plain ASCII";
  if (problem !== null) return invalid(`x-end-user ${problem}.`, END_USER_HEADER);
  if (user === null || user === header) return success(header);
  const param = paramOf === undefined ? "user" : paramOf("user");
  return invalid("The request body and the header x-end-user name two different end users.", param);
}

async function computeBounds(
  { c, endpoint }: PaidRequestContext,
  { parsed, caller }: ReadRequest,
): Promise<Result<PaidRequest>> {
  const { numbers, region } = c.get("config");
  const { catalogAt, providers, providerIds, times } = getDeployment(c.get("config"));
  const at = now(c.env);
  const catalog = catalogAt(at);
  const admitted = caller.home === region ? c.get("admitted") : undefined;
  const { corrected, current } = getPricingLookup(c);
  const pricing = await (admitted === undefined
    ? current(caller.orgId, at)
    : corrected(caller.orgId, admitted.priceList ?? null, at));
  if (!pricing.ok) return pricing;
  const defaultCap = endpoint.defaultsToMaxOutput === true ? Infinity : numbers.DEFAULT_MAX_OUTPUT;
  const speedOf = (route: string) => times.speedOf(route, caller.orgId);
  const saleBase = { catalog, providers, providerIds, speedOf };
  const sale = { ...saleBase, defaultCap, pricing: pricing.value };
  const request = computeModelBounds(parsed, sale);
  if (!request.ok || parsed.request.kind === "chat") return request;
  const texts = await decodeTokenInput(c, parsed, { routes: request.value.routes, providers });
  if (texts === null) return request;
  return texts.ok ? computeRequestBounds(texts.value, sale) : texts;
}

/**
 * Admits an unchecked key before rejecting its request. The request then counts toward the rate
 * limit, and a revoked key gets a 401.
 */
async function rejectAfterAdmission(
  { c }: PaidRequestContext,
  refusal: Rejection,
): Promise<Rejection> {
  const admission = await c.get("presumed")?.admitCaller();
  return admission === undefined || admission.ok ? refusal : admission;
}

function refuseRequest({ c, pendingResponse }: PaidRequestContext, refusal: Rejection): null {
  const { failure } = "shed" in refusal ? rejectOverloaded(c, refusal.shed) : refusal;
  pendingResponse.resolve(fail(c, failure));
  return null;
}

async function runAndRelease(context: PaidRequestContext): Promise<void> {
  const { c, pendingResponse, slot } = context;
  try {
    await runPaidPath(context);
  } catch (error) {
    pendingResponse.resolve(respondToUnexpectedError(error, c));
  } finally {
    c.get("timers").close();
    slot?.release();
  }
}

function createRun(
  { c, endpoint, pendingResponse, slot }: PaidRequestContext,
  known: Omit<ReadRequest, "parsed"> & { readonly request: PaidRequest },
): Run {
  const { caller, idempotency, request, bytes: bodyBytes } = known;
  const timers = c.get("timers");
  const services = createRunServices(c, caller);
  const { REQUEST_DEADLINE_S, DRAIN_S, DRAIN_THINKING_S } = services.numbers;
  const mayReason = getModelOptions(request).some(({ mayThink }) => mayThink);
  const isLongRunning =
    isSlowCallKind(request.core?.kind) || (request.stream && request.cap === null);
  const isSlow = mayReason || isLongRunning;
  const drainS = isSlow ? Math.max(DRAIN_S, DRAIN_THINKING_S) : DRAIN_S;
  const limits = { deadlineMs: REQUEST_DEADLINE_S * 1000, drainMs: drainS * 1000 };
  const progress = new RunProgress(c.get("admitted") ?? null);
  c.set("logged", true); // The function observe() logs the request after the charge.
  const timer = new RunTimer(c.req.raw.signal, timers, { ...limits, now: services.now });
  watchPaidRun(c, { id: c.get("requestId"), caller, timers, timer });
  return {
    id: c.get("requestId"),
    startedMs: c.get("startedMs"),
    endpoint,
    caller,
    admitsWithHold: c.get("presumed")?.admission === null,
    idempotency,
    request,
    bodyBytes,
    progress,
    timers,
    timer,
    services,
    slot,
    respond: (response) => {
      if (progress.admitted !== null) c.set("admitted", progress.admitted);
      pendingResponse.resolve(response instanceof Response ? response : fail(c, response));
    },
  };
}
