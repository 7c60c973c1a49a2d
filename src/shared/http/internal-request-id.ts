/**
 * Request IDs of internal requests. Clients can't set them, because the request object is the key.
 */
const idByRequest = new WeakMap<Request, string>();

export function setInternalRequestId(request: Request, requestId: string): void {
  idByRequest.set(request, requestId);
}

export function internalRequestIdOf(request: Request): string | undefined {
  return idByRequest.get(request);
}
