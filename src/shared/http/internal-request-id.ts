/**
 * Request IDs of internal requests. Clients can't set an ID, because the map's keys are request
 * objects.
 */
const idByRequest = new WeakMap<Request, string>();

export function setInternalRequestId(request: Request, requestId: string): void {
  idByRequest.set(request, requestId);
}

export function internalRequestIdOf(request: Request): string | undefined {
  return idByRequest.get(request);
}
