import type { Config } from "../config.ts";

/**
 * The operator whose token `Authorization` names as `Bearer <token>`: the scheme in any case, one space, the
 * token to the letter; null for nobody. Compares digests in constant time, all of them always, so neither
 * length nor content of a token leaks, nor whose it is.
 */
export async function operatorOf(
  authorization: string | null,
  operators: Config["operators"],
): Promise<string | null> {
  const token = /^bearer (.+)$/is.exec(authorization ?? "")?.[1] ?? "";
  const [sent, ...expected] = await Promise.all([
    digest(token),
    ...operators.map((operator) => digest(operator.token)),
  ]);
  const equal = expected.map((one) => crypto.subtle.timingSafeEqual(sent, one));
  const found = operators[equal.indexOf(true)];
  return found === undefined || found.token === "" ? null : found.name;
}

function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}

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
