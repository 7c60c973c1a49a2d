import type { Admitted } from "../lib/caller.ts";

/**
 * Requests that this region makes of itself for a peer, with the caller that the peer's signature and
 * the key's register vouch for. Known by identity: nothing that a client can send puts a request in here.
 */
const callers = new WeakMap<Request, Admitted>();

/** From here on `request` counts as admitted. */
export function vouchFor(request: Request, admitted: Admitted): void {
  callers.set(request, admitted);
}

/** Who was vouched for, or undefined for a request from outside. */
export function vouchedFor(request: Request): Admitted | undefined {
  return callers.get(request);
}
