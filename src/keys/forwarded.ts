import type { Admitted } from "../lib/caller.ts";
import type { VerifiedKey } from "./api-key.ts";

/**
 * What is known of a request that this region makes of itself: `admitted`, who calls and need not be admitted
 * any more, or `key`, whose it is, which must still be admitted.
 */
type Vouched = { readonly admitted: Admitted } | { readonly key: VerifiedKey };

/**
 * Requests that this region makes of itself: for a peer, with the caller that the peer's signature and the key's
 * register vouch for, and for a console's session. Known by identity: nothing that a client can send puts a
 * request in here.
 */
const callers = new WeakMap<Request, Vouched>();

/** From here on `request` counts as admitted. */
export function vouchFor(request: Request, admitted: Admitted): void {
  callers.set(request, { admitted });
}

/** From here on `request` comes with this key: admitted, held and paid for as if it had been sent. */
export function vouchForKey(request: Request, key: VerifiedKey): void {
  callers.set(request, { key });
}

/** Who was vouched for, or undefined for a request from outside. */
export function vouchedFor(request: Request): Vouched | undefined {
  return callers.get(request);
}
