/**
 * Request IDs of internal requests. They are keyed by the request object, so clients can't set
 * them.
 */
const idByRequest = new WeakMap<Request, string>();

export function setInternalRequestId(request: Request, requestId: string): void {
  idByRequest.set(request, requestId);
}

export function internalRequestIdOf(request: Request): string | undefined {
  return idByRequest.get(request);
}
