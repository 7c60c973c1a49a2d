/**
 * Ids of requests that this region makes of itself for a peer: its client was told that one. Known by
 * identity, so that nothing a client can send names its own request.
 */
const ids = new WeakMap<Request, string>();

/** From here on `request` goes by this id. */
export function giveId(request: Request, requestId: string): void {
  ids.set(request, requestId);
}

/** The id that was given, or undefined for a request from outside. */
export function givenId(request: Request): string | undefined {
  return ids.get(request);
}
