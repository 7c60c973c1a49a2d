import type { Config } from "../config/config.ts";
import type { Result } from "../failure.ts";
import { InFlight } from "../in-flight.ts";
import type { ShedReason } from "../in-flight.ts";
import { optionalVariables } from "./context.ts";
import type { AppContext } from "./context.ts";
import { Isolate } from "./isolate.ts";
import { WHOLE_BYTES_MAX } from "./read-json.ts";
import type { BodyLimits } from "./read-json.ts";

/** Admission, attempts to store an outcome, and a margin. */
const LEASE_SPARE_MS = 60_000;
/** Who sends a body without a key: an operator. */
const NO_KEY = "";

/** What this isolate has in flight under a configuration. */
export function inFlightOf(config: Config): InFlight {
  return Isolate.of(config).get(makeRoom);
}

function makeRoom({ numbers }: Config): InFlight {
  return new InFlight({
    organizationMax: numbers.ORGANIZATION_IN_FLIGHT_MAX,
    isolateMax: numbers.ISOLATE_IN_FLIGHT_MAX,
    bytesMax: numbers.ISOLATE_BODIES_MIB_MAX * 1024 * 1024,
    leaseMs: numbers.BODY_TIMEOUT_MS + numbers.REQUEST_DEADLINE_S * 1000 + LEASE_SPARE_MS,
  });
}

/** The bytes of a request's body that are counted when it takes its place: a large one takes room as it comes. */
export function initialBodyBytes(declaredBytes: number): number {
  return declaredBytes <= WHOLE_BYTES_MAX ? declaredBytes : 0;
}

/** A body's bytes as declared; Infinity where they are not. */
export function bodyLength(c: AppContext): number {
  const declared = Number(c.req.header("content-length"));
  return declared > 0 ? declared : Infinity;
}

/** There is no room for its body. */
type Shed = { readonly ok: false; readonly shed: ShedReason };

/**
 * Reads the body of an admitted request that is not paid for: with a place among what is in flight, for its
 * organization where a key sent it, and with room for its bytes, both until the request is answered.
 */
export async function readWithSlot<T>(
  c: AppContext,
  read: (request: Request, limits: BodyLimits) => Promise<Result<T>>,
  limits: BodyLimits,
): Promise<Result<T> | Shed> {
  const caller = optionalVariables(c, "admitted")?.caller;
  const length = bodyLength(c);
  if (length !== Infinity && length > limits.bytesMax) return read(c.req.raw, limits); // refused unread
  const bytes = initialBodyBytes(length);
  const room = inFlightOf(c.var.config);
  const slot = room.take(caller?.keyHash ?? NO_KEY, bytes, c.var.startedMs);
  if (typeof slot === "string") return { ok: false, shed: slot };
  c.set("place", slot);
  const why = caller === undefined ? null : slot.handTo(caller.orgId);
  if (why !== null) return { ok: false, shed: why };
  const body = await read(c.req.raw, { ...limits, hasRoom: (more) => slot.grow(more) === null });
  return !body.ok && body.failure.kind === "overloaded" ? { ok: false, shed: "bytes" } : body;
}
