import type { Config, OperatorRole } from "../shared/config/config.ts";
import { sha256Hex } from "../shared/hash.ts";

/** Who operates: the name that events bear, and what they may do. */
export type Operator = { readonly name: string; readonly role: OperatorRole };

/**
 * The operator whose token `Authorization` names as `Bearer <token>`: the scheme in any case, one space, the
 * token to the letter; null for nobody.
 */
export async function operatorOf(
  authorization: string | null,
  operators: Config["operators"],
): Promise<Operator | null> {
  const token = /^bearer (.+)$/is.exec(authorization ?? "")?.[1];
  return token === undefined ? null : operatorByHash(await sha256Hex(token), operators);
}

/**
 * The operator whose token has this SHA-256 (in hex), or null. Compares digests in constant time, all of them
 * always, so neither length nor content of a token leaks, nor whose it is.
 */
export async function operatorByHash(
  hash: string,
  operators: Config["operators"],
): Promise<Operator | null> {
  const sent = encoder.encode(hash);
  const hashes = await Promise.all(operators.map(({ token }) => sha256Hex(token)));
  const equal = hashes.map((one) => crypto.subtle.timingSafeEqual(sent, encoder.encode(one)));
  const found = operators[equal.indexOf(true)];
  return found === undefined || found.token === "" ? null : { name: found.name, role: found.role };
}

const encoder = new TextEncoder();

/** The operator of OPERATOR_LOGINS with this identity at an issuer of LOGIN_ISSUERS, by its id there; or null. */
export function operatorOfLogin(
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
  logins: Config["operatorLogins"],
): Operator | null {
  const found = logins.find((one) => one.issuer === issuer && one.subject === subject);
  return found === undefined ? null : { name: found.name, role: found.role };
}

/**
 * Requests that this region makes of itself for an operator's console, whose session was checked. Known by
 * identity: nothing that a client can send puts a request in here.
 */
const operators = new WeakMap<Request, Operator>();

/** From here on `request` is this operator's. */
export function vouchForOperator(request: Request, operator: Operator): void {
  operators.set(request, operator);
}

/** The operator who was vouched for; null for a request from outside. */
export function vouchedOperator(request: Request): Operator | null {
  return operators.get(request) ?? null;
}
