/** The IDs of internal requests. Keyed by object identity, so clients can't set one. */
const ids = new WeakMap<Request, string>();

export function giveId(request: Request, requestId: string): void {
  ids.set(request, requestId);
}

export function givenId(request: Request): string | undefined {
  return ids.get(request);
}
