import type { Config } from "../config/config.ts";
import { refuse } from "../failure.ts";
import type { Result } from "../failure.ts";
import { InFlight } from "../in-flight.ts";
import type { ShedReason } from "../in-flight.ts";
import { optionalVariables } from "./context.ts";
import type { AppContext } from "./context.ts";
import { Isolate } from "./isolate.ts";
import { WHOLE_BYTES_MAX } from "./read-json.ts";
import type { BodyLimits } from "./read-json.ts";

/** Ms for admission, storing an outcome and a margin. */
const LEASE_SPARE_MS = 60_000;
const NO_KEY = "";

/** Returns this isolate's requests in flight. */
export function inFlightOf(config: Config): InFlight {
  return Isolate.of(config).get(makeRoom);
}

function makeRoom({ numbers }: Config): InFlight {
  return new InFlight({
    memoryMax: numbers.ISOLATE_MEMORY_MIB_MAX * 1024 * 1024,
    organizationMax: numbers.ORGANIZATION_IN_FLIGHT_MAX,
    waitMs: numbers.OVERLOAD_WAIT_MS,
    leaseMs: numbers.BODY_TIMEOUT_MS + numbers.REQUEST_DEADLINE_S * 1000 + LEASE_SPARE_MS,
  });
}

/** Returns the body bytes counted at admission. Large bodies are counted on arrival. */
export function initialBodyBytes(declaredBytes: number): number {
  return declaredBytes <= WHOLE_BYTES_MAX ? declaredBytes : 0;
}

/** Returns the declared body length, or Infinity. */
export function bodyLength(c: AppContext): number {
  const declared = Number(c.req.header("content-length"));
  return declared > 0 ? declared : Infinity;
}

/** The share of body room of a caller without a key: all operators, all merchants, or one person. */
export type BodyOwner = "operators" | "merchants" | `person:${string}`;

/** The memory of an isolate for bodies from anyone: those before authentication, and Stripe's. */
const OPEN_ROOM_BYTES = 8 * 1024 * 1024;
const OPEN_LEASE_MS = 10_000;

function makeOpenRooms(): Record<"anonymous" | "stripe", InFlight> {
  const limits = {
    memoryMax: OPEN_ROOM_BYTES,
    organizationMax: Infinity,
    waitMs: 0,
    leaseMs: OPEN_LEASE_MS,
  };
  return { anonymous: new InFlight(limits), stripe: new InFlight(limits) };
}

/**
 * Reads a small body of a caller who isn't authenticated, in a room that no other requests use. Each address has a
 * share. Returns 503 above it.
 */
export async function readAnonymous<T>(
  c: AppContext,
  read: (request: Request, limits: BodyLimits) => Promise<Result<T>>,
  limits: BodyLimits,
  room: keyof ReturnType<typeof makeOpenRooms> = "anonymous",
): Promise<Result<T>> {
  const length = bodyLength(c);
  if (length !== Infinity && length > limits.bytesMax) return read(c.req.raw, limits); // rejected unread
  const address = c.req.header("cf-connecting-ip") ?? "";
  const rooms = Isolate.of(c.var.config).get(makeOpenRooms);
  const slot = rooms[room].take(NO_KEY, initialBodyBytes(length), c.var.startedMs, address);
  if (typeof slot === "string") return refuse({ kind: "overloaded" });
  try {
    return await read(c.req.raw, { ...limits, hasRoom: (more) => slot.grow(more) === null });
  } finally {
    slot.release();
  }
}

type Shed = { readonly ok: false; readonly shed: ShedReason };

/** Reads the body of an unpaid request with a slot and byte capacity, both held until the response. */
export async function readWithSlot<T>(
  c: AppContext,
  read: (request: Request, limits: BodyLimits) => Promise<Result<T>>,
  limits: BodyLimits,
  owner?: BodyOwner,
): Promise<Result<T> | Shed> {
  const caller = optionalVariables(c, "admitted")?.caller;
  const length = bodyLength(c);
  if (length !== Infinity && length > limits.bytesMax) return read(c.req.raw, limits); // rejected unread
  const bytes = initialBodyBytes(length);
  const room = inFlightOf(c.var.config);
  const slot = room.take(caller?.keyHash ?? NO_KEY, bytes, c.var.startedMs, owner);
  if (typeof slot === "string") return { ok: false, shed: slot };
  c.set("place", slot);
  const why = caller === undefined ? null : slot.handTo(caller.orgId);
  if (why !== null) return { ok: false, shed: why };
  const body = await read(c.req.raw, { ...limits, hasRoom: (more) => slot.grow(more) === null });
  return !body.ok && body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
}
