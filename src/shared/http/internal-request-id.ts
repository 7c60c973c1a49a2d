/**
 * Request IDs of internal requests. Clients can't set an ID, because the map's keys are request
 * objects.
 */
export const internalRequestIds = new WeakMap<Request, string>();
