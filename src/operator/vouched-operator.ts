/**
 * Requests that this region makes of itself for an operator's console, whose session was checked. Known by
 * identity: nothing that a client can send puts a request in here.
 */
const operators = new WeakMap<Request, string>();

/** From here on `request` is this operator's. */
export function vouchForOperator(request: Request, name: string): void {
  operators.set(request, name);
}

/** The operator who was vouched for; null for a request from outside. */
export function vouchedOperator(request: Request): string | null {
  return operators.get(request) ?? null;
}
