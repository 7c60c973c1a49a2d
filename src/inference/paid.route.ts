import type { Context } from "hono";
import { routePath } from "hono/route";
import { now } from "../lib/clock.ts";
import type { Caller } from "../lib/caller.ts";
import { externalIdProblem } from "../lib/external-id.ts";
import { invalid, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { idempotencyOf, readIdempotencyKey } from "../lib/idempotency.ts";
import type { Idempotency } from "../lib/idempotency.ts";
import type { ShedReason, Slot } from "../lib/in-flight.ts";
import { fail, failUnexpectedly } from "../http/context.ts";
import type { AppEnv, Presumed } from "../http/context.ts";
import { BODY_BYTES_MAX, readJsonBody } from "../http/read-json.ts";
import { handOver, recorderOf } from "../metrics/count-requests.route.ts";
import { bounded } from "./bound.ts";
import type { Asked, Door } from "./doors/door.ts";
import { countRun, dataPointOf, logRun, routeGauges } from "./observe.ts";
import { offerOf } from "./offer.ts";
import type { PaidRequest, Run } from "./paid-request.ts";
import { runServices } from "./run-services.route.ts";
import { runPaid } from "./run.ts";
import { shed } from "./shed.route.ts";

const END_USER = "x-end-user";
const PLAIN = /^[\u0020-\u007e]*$/;
type Answered = PromiseWithResolvers<Response>;

/**
 * Reads, checks and runs a paid request, or sheds it. Admission was started before the body is read, or
 * comes with the hold, and is awaited before anything is answered. All of it is registered with waitUntil before it reads or
 * holds anything: a client that leaves cannot strand a hold, nor a place among those in flight.
 */
export function answerPaid(c: Context<AppEnv>, door: Door): Promise<Response> | Response {
  const slot = c.get("slot") as Slot | ShedReason | undefined;
  if (typeof slot === "string") return fail(c, shed(c, slot).failure);
  const answered = Promise.withResolvers<Response>();
  c.executionCtx.waitUntil(toItsEnd(c, door, { answered, slot }));
  return answered.promise;
}

/** The request with whatever it throws answered; then its place is free. `slot`: none for a key that is none. */
async function toItsEnd(
  c: Context<AppEnv>,
  door: Door,
  { answered, slot }: { readonly answered: Answered; readonly slot: Slot | undefined },
): Promise<void> {
  try {
    const asked = await checked(c, door, slot);
    if (asked.ok) {
      await runToItsEnd(c, runOf(c, door, { asked: asked.value, answered, slot }), answered);
    } else answered.resolve(fail(c, asked.failure));
  } catch (error) {
    answered.resolve(failUnexpectedly(error, c));
  } finally {
    c.get("timers").close();
    slot?.release();
  }
}

function runOf(
  c: Context<AppEnv>,
  door: Door,
  {
    asked,
    answered,
    slot,
  }: { readonly asked: Checked; readonly answered: Answered; readonly slot: Slot | undefined },
): Run {
  return {
    id: c.get("requestId"),
    startedMs: c.get("startedMs"),
    door,
    ...asked,
    progress: { mayBeCharged: false, outcome: null, charged: 0, shortfall: 0, isUnsaved: false },
    timers: c.get("timers"),
    services: runServices(c, asked.caller),
    room: (bytes) => {
      const why = slot?.grow(bytes) ?? null;
      if (why !== null) shed(c, why);
      return why === null;
    },
    dropBody: () => {
      const { request } = asked;
      request.body = {};
      if (request.native !== null) request.native = { ...request.native, body: {} };
      slot?.dropBody();
    },
    answer: answered.resolve,
    refuse: (failure) => answered.resolve(fail(c, failure)),
  };
}

/** The run, then its counts and its line. */
async function runToItsEnd(c: Context<AppEnv>, run: Run, answered: Answered): Promise<void> {
  c.set("logged", true);
  try {
    await runPaid(run, c.req.raw.signal);
  } catch (error) {
    answered.resolve(failUnexpectedly(error, c));
  }
  const { status } = await answered.promise;
  observe(c, run, status);
}

/** After the run's end: its counts, and its line in the log. */
function observe(c: Context<AppEnv>, run: Run, status: number): void {
  const config = c.get("config");
  const recorder = recorderOf(config);
  const { env } = c; // not c: what the isolate keeps must not keep its last request
  const { health } = run.services;
  recorder.view = () => routeGauges(health, now(env));
  countRun(run, recorder.tally);
  const point = env.ANALYTICS === undefined ? null : dataPointOf(run);
  if (point !== null) env.ANALYTICS?.writeDataPoint(point);
  if (status !== 401) handOver(c); // as in countRequests: a dead key costs no object call more
  const failure = (c.get("failure") as string | undefined) ?? null;
  const isTold = status >= 400 || config.logRequests === "all";
  if (isTold) logRun(run, { route: routePath(c), status, failure });
}

type Checked = {
  readonly caller: Caller;
  readonly request: PaidRequest;
  readonly idempotency: Idempotency | null;
};

/**
 * The request, checked and bounded; refused for its API key, then its Idempotency-Key, then its body. One
 * that is only presumed to be admitted, and is refused here, is admitted first: it counts, and a dead key
 * is told so before anything else.
 */
async function checked(
  c: Context<AppEnv>,
  door: Door,
  slot: Slot | undefined,
): Promise<Result<Checked>> {
  const config = c.get("config");
  const reading = readJsonBody(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: config.numbers.BODY_TIMEOUT_MS,
    after: c.get("timers").after,
    hasRoom: (bytes) => (slot?.grow(bytes) ?? null) === null,
  });
  const presumed = c.get("presumed") as Presumed | undefined;
  if (presumed !== undefined) {
    const asked = await askedBy(c, { door, slot, reading, caller: presumed.caller });
    if (asked.ok) return asked;
    const admission = await presumed.admit();
    return admission.ok ? refused(c, asked) : admission;
  }
  const admission = await c.get("admission");
  if (!admission.ok) return admission;
  const asked = await askedBy(c, { door, slot, reading, caller: admission.value.caller });
  return asked.ok ? asked : refused(c, asked);
}

type Asking = {
  readonly door: Door;
  readonly slot: Slot | undefined;
  readonly reading: ReturnType<typeof readJsonBody>;
  readonly caller: Caller;
};
/** Not asked, or shed for want of room. */
type NotAsked = Refusal | { readonly ok: false; readonly shed: ShedReason };

async function askedBy(
  c: Context<AppEnv>,
  { door, slot, reading, caller }: Asking,
): Promise<NotAsked | { readonly ok: true; readonly value: Checked }> {
  const { keyId, orgId } = caller;
  const why = slot?.handTo(orgId) ?? null;
  if (why !== null) return { ok: false, shed: why };
  const key = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!key.ok) return key;
  const body = await reading;
  if (!body.ok) return body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
  const { json, bytes } = body.value;
  const request = requestOf(c, door, json);
  if (!request.ok) return request;
  const named = { keyId, orgId, path: c.req.path, bytes };
  const idempotency = key.value === null ? null : await idempotencyOf(key.value, named);
  return { ok: true, value: { caller, request: request.value, idempotency } };
}

/** The body as the door reads it, by whom it is, bounded. */
function requestOf(c: Context<AppEnv>, door: Door, json: object): Result<PaidRequest> {
  const asked = door.parse(json, {
    header: (name) => c.req.header(name),
    query: (name) => c.req.query(name),
  });
  if (!asked.ok) return asked;
  const user = endUserOf(asked.value, c.req.header(END_USER));
  if (!user.ok) return user;
  const { numbers } = c.get("config");
  const { catalog, providers } = offerOf(c.get("config"));
  const sold = { catalog, providers, defaultCap: numbers.DEFAULT_MAX_OUTPUT };
  return bounded({ ...asked.value, user: user.value }, sold);
}

/** Who spends: what the body and the header `x-end-user` say, which must be one. */
function endUserOf({ user, paramOf }: Asked, header: string | undefined): Result<string | null> {
  if (header === undefined) return success(user);
  // Other letters would be read in whichever encoding the two ends believe in.
  const problem = PLAIN.test(header) ? externalIdProblem(header) : "must be plain ASCII";
  if (problem !== null) return invalid(`x-end-user ${problem}.`, END_USER);
  if (user === null || user === header) return success(header);
  const param = paramOf === undefined ? "user" : paramOf("user");
  return invalid("The body and the header x-end-user name two different end users.", param);
}

/** Shed requests are counted where they are answered. */
function refused(c: Context<AppEnv>, asked: NotAsked): Refusal {
  return "shed" in asked ? shed(c, asked.shed) : asked;
}
