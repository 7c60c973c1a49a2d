import { getNetworkOfAddress } from "../network.ts";
import type { Config } from "../config/config.ts";
import { refuse } from "../failure.ts";
import type { Result } from "../failure.ts";
import { RequestMemoryPool } from "../in-flight.ts";
import type { OverloadReason } from "../in-flight.ts";
import { readOptionalVariable } from "./context.ts";
import type { AppContext } from "./context.ts";
import { Isolate } from "./isolate.ts";
import { SINGLE_READ_BYTES_MAX } from "./read-json.ts";
import type { BodyLimits } from "./read-json.ts";

/** Time for admission and for storing the outcome, in ms. */
const LEASE_MARGIN_MS = 60_000;
const NO_KEY = "";

export function memoryPoolOfIsolate(config: Config): RequestMemoryPool {
  return Isolate.of(config).get(makeRequestMemory);
}

function makeRequestMemory({ numbers }: Config): RequestMemoryPool {
  return new RequestMemoryPool({
    memoryMax: numbers.ISOLATE_MEMORY_MIB_MAX * 1024 * 1024,
    organizationMax: numbers.ORGANIZATION_IN_FLIGHT_MAX,
    waitMs: numbers.OVERLOAD_WAIT_MS,
    leaseMs: numbers.BODY_TIMEOUT_MS + numbers.REQUEST_DEADLINE_S * 1000 + LEASE_MARGIN_MS,
  });
}

export function bytesToReserveForBody(declaredBytes: number): number {
  return declaredBytes <= SINGLE_READ_BYTES_MAX ? declaredBytes : 0;
}

/** Returns the `Content-Length`, or Infinity without one. */
export function declaredBodyBytes(c: AppContext): number {
  const declared = Number(c.req.header("content-length"));
  return declared > 0 ? declared : Infinity;
}

/** A group of callers without a key, with its own share of the memory for bodies. */
export type AnonymousBodyOwner = "operators" | "merchants" | `person:${string}`;

/**
 * An isolate's memory limit for bodies of requests without a key. Stripe's webhooks have a separate
 * limit of the same size.
 */
const ANONYMOUS_MEMORY_BYTES = 8 * 1024 * 1024;
const ANONYMOUS_LEASE_MS = 10_000;

function makeSlotPools(): Record<"anonymous" | "stripe", RequestMemoryPool> {
  const limits = {
    memoryMax: ANONYMOUS_MEMORY_BYTES,
    organizationMax: Infinity,
    waitMs: 0,
    leaseMs: ANONYMOUS_LEASE_MS,
  };
  return { anonymous: new RequestMemoryPool(limits), stripe: new RequestMemoryPool(limits) };
}

/**
 * Reads a small body of a request without a key, in separate memory. Fails with 503 if this memory
 * is full.
 */
export async function readAnonymousBody<T>(
  c: AppContext,
  read: (request: Request, limits: BodyLimits) => Promise<Result<T>>,
  limits: BodyLimits,
  pool: keyof ReturnType<typeof makeSlotPools> = "anonymous",
): Promise<Result<T>> {
  const length = declaredBodyBytes(c);
  // `read` rejects a body by its declared length alone.
  if (length !== Infinity && length > limits.bytesMax) return read(c.req.raw, limits);
  const address = getNetworkOfAddress(c.req.header("cf-connecting-ip") ?? "");
  const pools = Isolate.of(c.var.config).get(makeSlotPools);
  const slot = pools[pool].take(NO_KEY, bytesToReserveForBody(length), c.var.startedMs, address);
  if (typeof slot === "string") return refuse({ kind: "overloaded" });
  try {
    return await read(c.req.raw, { ...limits, hasRoom: (bytes) => slot.grow(bytes) === null });
  } finally {
    slot.release();
  }
}

type OverloadRefusal = { readonly ok: false; readonly shed: OverloadReason };

export async function readBodyInMemorySlot<T>(
  c: AppContext,
  read: (request: Request, limits: BodyLimits) => Promise<Result<T>>,
  limits: BodyLimits,
  owner?: AnonymousBodyOwner,
): Promise<Result<T> | OverloadRefusal> {
  const caller = readOptionalVariable(c, "admitted")?.caller;
  const length = declaredBodyBytes(c);
  if (length !== Infinity && length > limits.bytesMax) return read(c.req.raw, limits);
  const bytes = bytesToReserveForBody(length);
  const pool = memoryPoolOfIsolate(c.var.config);
  const slot = pool.take(caller?.keyHash ?? NO_KEY, bytes, c.var.startedMs, owner);
  if (typeof slot === "string") return { ok: false, shed: slot };
  c.set("place", slot);
  const why = caller === undefined ? null : slot.assignToOrganization(caller.orgId);
  if (why !== null) return { ok: false, shed: why };
  const body = await read(c.req.raw, { ...limits, hasRoom: (more) => slot.grow(more) === null });
  return !body.ok && body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
}
