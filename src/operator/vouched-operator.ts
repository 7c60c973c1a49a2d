/**
 * Requests that this region makes of itself for an operator's console, whose session was checked. Known by
 * identity: nothing that a client can send puts a request in here.
 */
const requests = new WeakSet<Request>();

/** From here on `request` is an operator's. */
export function vouchForOperator(request: Request): void {
  requests.add(request);
}

/** Whether an operator was vouched for. */
export function isVouchedOperator(request: Request): boolean {
  return requests.has(request);
}
