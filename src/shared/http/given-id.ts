/**
 * IDs of requests made for another region, whose client has that ID. Keyed by identity, so clients can't set
 * one.
 */
const ids = new WeakMap<Request, string>();

/** Assigns an ID to a request. */
export function giveId(request: Request, requestId: string): void {
  ids.set(request, requestId);
}

/** Returns the assigned ID, or undefined for a request from outside. */
export function givenId(request: Request): string | undefined {
  return ids.get(request);
}
