import type { MiddlewareHandler, Next } from "hono";
import type { Config } from "../../shared/config/config.ts";
import { rejectIf } from "../../shared/http/context.ts";
import type { AppContext, AppEnv, PresumedCaller } from "../../shared/http/context.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import {
  declaredBodyBytes,
  bytesToReserveForBody,
  memoryPoolOfIsolate,
} from "../../shared/http/request-slots.ts";
import type { AdmittedRequest, Caller, VerifiedKey } from "../../shared/caller.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { SMALL_BODY_BYTES } from "../../shared/in-flight.ts";
import type { RequestMemoryPool, OverloadReason, RequestSlot } from "../../shared/in-flight.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { Timers } from "../../shared/timers.ts";
import { admitKey, verifyRequestKey, KeyOwnerCache } from "./authenticate.ts";
import { internalCallers } from "./internal-caller.ts";

/**
 * Middleware that verifies the key of each `/v1` request without I/O and starts its admission. A
 * paid POST also takes a memory slot. If its key is known and its body small, the call that places
 * the hold also admits the key.
 */
export function startAdmission(paidPaths: ReadonlySet<string>): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    c.set("timers", new Timers(memoryPoolOfIsolate(c.get("config")).recordDelay));
    const internalCaller = internalCallers.get(c.req.raw);
    if (internalCaller !== undefined && "admitted" in internalCaller) {
      c.set("admitted", internalCaller.admitted);
      c.set("admissionMs", 0);
      c.set("admission", Promise.resolve(success(internalCaller.admitted)));
      return next();
    }
    const key =
      internalCaller === undefined ? await verifyKeyOfRequest(c) : success(internalCaller.key);
    if (!key.ok) {
      c.set("admission", Promise.resolve(key));
      return next();
    }
    if (c.req.method !== "POST" || !paidPaths.has(c.req.path)) {
      c.set("admission", admitAndMeasure(c, key.value));
      return next();
    }
    const slot = takeSlot(c, key.value);
    if (!(slot instanceof Promise)) {
      startPaidRequest(c, key.value, slot);
      return next();
    }
    const paidRequest = startPaidRequestAfterSlot(c, key.value, slot, next);
    // The background work releases the slot even if the client disconnects.
    c.executionCtx.waitUntil(paidRequest);
    return paidRequest;
  };
}

async function startPaidRequestAfterSlot(
  c: AppContext,
  key: VerifiedKey,
  slot: Promise<RequestSlot | OverloadReason>,
  next: Next,
): Promise<void> {
  startPaidRequest(c, key, await slot);
  await next();
}

function takeSlot(
  c: AppContext,
  { hash }: VerifiedKey,
): ReturnType<RequestMemoryPool["takeOrWait"]> {
  const bytes = bytesToReserveForBody(declaredBodyBytes(c));
  const requestMemory = memoryPoolOfIsolate(c.get("config"));
  return requestMemory.takeOrWait(hash, bytes, c.get("startedMs"), c.get("timers").after);
}

function startPaidRequest(
  c: AppContext,
  key: VerifiedKey,
  slot: RequestSlot | OverloadReason,
): void {
  recordKnownCaller(c, key);
  c.set("slot", slot);
  if (typeof slot === "string") return;
  const caller = declaredBodyBytes(c) > SMALL_BODY_BYTES ? undefined : findPresumedCaller(c, key);
  if (caller === undefined) {
    c.set("admission", admitAndMeasure(c, key));
    return;
  }
  const presumed: PresumedCaller = {
    caller,
    admitCaller: () => (presumed.admission ??= admitAndMeasure(c, key)),
    admission: null,
  };
  c.set("presumed", presumed);
}

function recordKnownCaller(c: AppContext, key: VerifiedKey): void {
  const met = keyOwnerCacheOf(c.get("config")).getIncludingRejected(key);
  if (met !== undefined) c.set("met", met);
}

async function verifyKeyOfRequest(c: AppContext): Promise<Result<VerifiedKey>> {
  const { keySecrets, region } = c.get("config");
  const authorization = c.req.header("authorization") ?? null;
  const apiKey = c.req.header("x-api-key") ?? null;
  const key = await verifyRequestKey({
    authorization,
    apiKey,
    keySecrets,
    region,
    origin: () => c.req.header("origin") ?? null,
    now: c.get("startedMs"),
  });
  // Without CORS headers, a browser page would see a network error and retry.
  const origins = key.ok ? key.value.shown?.session?.origins : null;
  if (origins !== undefined && origins !== null) c.set("origins", origins);
  return key;
}

/** Returns a key's caller from the isolate's cache. The key may have been revoked meanwhile. */
function findPresumedCaller(c: AppContext, key: VerifiedKey): Caller | undefined {
  const config = c.get("config");
  return key.home === config.region ? keyOwnerCacheOf(config).get(key) : undefined;
}

export function keyOwnerCacheOf(config: Config): KeyOwnerCache {
  return Isolate.of(config).get(createKnownCallers);
}

const createKnownCallers = (): KeyOwnerCache => new KeyOwnerCache();

async function admitAndMeasure(c: AppContext, key: VerifiedKey): Promise<Result<AdmittedRequest>> {
  const config = c.get("config");
  const startedMs = elapsedMs();
  const result = await admitKey(key, {
    region: config.region,
    ...objectsOf(c.env),
    callers: keyOwnerCacheOf(config),
    after: c.get("timers").after,
  });
  if (result.ok) c.set("admitted", result.value);
  c.set("admissionMs", elapsedMs() - startedMs);
  return result;
}

export const requireAdmission = rejectIf(async (c) => {
  const admission = await c.get("admission");
  c.get("timers").close();
  return admission.ok ? null : admission.failure;
});

export const refuseSessions = rejectIf(({ var: { admitted } }) =>
  admitted.caller.shown?.session === undefined ? null : { kind: "key_is_limited" },
);

/** Middleware that rejects keys with limits, because they could remove their own limits. */
export const requireUnlimitedKey = rejectIf(({ var: { admitted } }) =>
  admitted.isLimited === true ? { kind: "key_is_limited" } : null,
);
