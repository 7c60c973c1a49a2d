/**
 * The IDs of internal requests. The map's key is the request object, so that clients can't set an
 * ID.
 */
const ids = new WeakMap<Request, string>();

export function giveId(request: Request, requestId: string): void {
  ids.set(request, requestId);
}

export function internalRequestIdOf(request: Request): string | undefined {
  return ids.get(request);
}
