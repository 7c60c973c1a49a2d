import type { Context, MiddlewareHandler, Next } from "hono";
import type { Config } from "../config.ts";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { Isolate } from "../http/isolate.ts";
import { WHOLE_BYTES_MAX } from "../http/read-json.ts";
import type { Admitted, Caller } from "../lib/caller.ts";
import { elapsedMs } from "../lib/clock.ts";
import { success } from "../lib/failure.ts";
import type { Failure, Result } from "../lib/failure.ts";
import { InFlight, SMALL_BODY_BYTES } from "../lib/in-flight.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { Timers } from "../lib/timers.ts";
import type { VerifiedKey } from "./api-key.ts";
import { admitKey, verifyRequest, KnownCallers } from "./authenticate.ts";
import { vouchedFor } from "./vouched.ts";

/** Admission, attempts to store an outcome, and a margin. */
const LEASE_SPARE_MS = 60_000;

/**
 * Verifies the key of every `/v1` request without I/O, then asks for its admission and sets `admission`,
 * which what costs money awaits itself, so that its body is read meanwhile; everything else passes
 * `requireAdmission`. A POST to a path that costs money takes its place in flight before, in `slot`;
 * where there is none, `slot` is the reason, and neither objects nor body are touched. At its key's home,
 * with a small body and a key that this isolate has met, nobody is asked yet: `presumed` says who it is,
 * and its wallet admits it in the call that holds for it.
 */
export function startAdmission(paidPaths: ReadonlySet<string>): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    c.set("timers", new Timers());
    const vouched = vouchedFor(c.req.raw);
    if (vouched !== undefined && "admitted" in vouched) {
      c.set("admitted", vouched.admitted);
      c.set("admissionMs", 0);
      c.set("admission", Promise.resolve(success(vouched.admitted)));
      return next();
    }
    const key = vouched === undefined ? await verified(c) : success(vouched.key);
    if (!key.ok) {
      c.set("admission", Promise.resolve(key));
      return next();
    }
    if (c.req.method === "POST" && paidPaths.has(c.req.path)) {
      const length = bodyLength(c);
      const whole = length <= WHOLE_BYTES_MAX ? length : 0; // a larger one takes room as it comes
      const slot = inFlightOf(c).take(key.value.hash, whole, c.get("startedMs"));
      c.set("slot", slot);
      if (typeof slot === "string") return next();
      const caller = length > SMALL_BODY_BYTES ? undefined : presumedCaller(c, key.value);
      if (caller !== undefined) {
        c.set("presumed", {
          caller,
          admit: () => admissionBy(c, key.value),
          forget: () => callersOf(c.get("config")).forget(key.value),
        });
        return next();
      }
    }
    c.set("admission", admissionBy(c, key.value));
    return next();
  };
}

async function verified(c: Context<AppEnv>): Promise<Result<VerifiedKey>> {
  const { keySecrets, region } = c.get("config");
  const authorization = c.req.header("authorization") ?? null;
  const apiKey = c.req.header("x-api-key") ?? null;
  const key = await verifyRequest({
    authorization,
    apiKey,
    keySecrets,
    region,
    origin: () => c.req.header("origin") ?? null,
    now: c.get("startedMs"),
  });
  const origins = key.ok ? key.value.shown?.session?.origins : originsOfRefused(key.failure);
  if (origins !== undefined && origins !== null) c.set("origins", origins);
  return key;
}

/** No page may read why its session is not for it. */
function originsOfRefused({ kind }: Failure): readonly string[] | null {
  return kind === "origin_not_allowed" ? [] : null;
}

/** Whose request with a small body it is, which may wait for its admission: a large one would be read for a key that may be dead. */
function presumedCaller(c: Context<AppEnv>, key: VerifiedKey): Caller | undefined {
  const config = c.get("config");
  return key.home === config.region ? callersOf(config).get(key) : undefined;
}

/** The keys of this home that this isolate has met. */
export function callersOf(config: Config): KnownCallers {
  return Isolate.of(config).get(makeCallers);
}

/** What this isolate has in flight under a configuration. */
function inFlightOf(c: Context<AppEnv>): InFlight {
  return Isolate.of(c.get("config")).get(makeRoom);
}

const makeCallers = (): KnownCallers => new KnownCallers();

function makeRoom({ numbers }: Config): InFlight {
  return new InFlight({
    organizationMax: numbers.ORGANIZATION_IN_FLIGHT_MAX,
    isolateMax: numbers.ISOLATE_IN_FLIGHT_MAX,
    bytesMax: numbers.ISOLATE_BODIES_MIB_MAX * 1024 * 1024,
    leaseMs: numbers.BODY_TIMEOUT_MS + numbers.REQUEST_DEADLINE_S * 1000 + LEASE_SPARE_MS,
  });
}

/** A body's bytes as declared; Infinity where they are not. */
function bodyLength(c: Context<AppEnv>): number {
  const declared = Number(c.req.header("content-length"));
  return declared > 0 ? declared : Infinity;
}

async function admissionBy(c: Context<AppEnv>, key: VerifiedKey): Promise<Result<Admitted>> {
  const config = c.get("config");
  const registers = inJurisdiction(c.env.KEY_REGISTER, config.jurisdiction);
  const wallets = inJurisdiction(c.env.WALLET, config.jurisdiction);
  const startedMs = elapsedMs();
  const result = await admitKey(key, {
    region: config.region,
    register: (keyHash) => registers.getByName(keyHash),
    wallet: (orgId) => wallets.getByName(orgId),
    callers: callersOf(config),
    after: c.get("timers").after,
  });
  if (result.ok) c.set("admitted", result.value);
  c.set("admissionMs", elapsedMs() - startedMs);
  return result;
}

/** Lets only admitted requests through, with `admitted` set. */
export async function requireAdmission(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  const admission = await c.get("admission");
  c.get("timers").close();
  if (!admission.ok) return fail(c, admission.failure);
  await next();
  return undefined;
}

/**
 * Lets a key with limits of its own no further: what manages keys, quotas or settings could lift them.
 * Goes after what such a key may do.
 */
export async function requireUnlimited(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  if (c.get("admitted").isLimited === true) return fail(c, { kind: "key_is_limited" });
  await next();
  return undefined;
}
