import type { Config, OperatorRole } from "../shared/config/config.ts";
import { sha256Hex } from "../shared/hash.ts";

/** An operator: the name for events, and the role. */
export type Operator = { readonly name: string; readonly role: OperatorRole };

/** Returns the operator of `Authorization: Bearer <token>` (the scheme in any case, one space), or null. */
export async function operatorOf(
  authorization: string | null,
  operators: Config["operators"],
): Promise<Operator | null> {
  const token = /^bearer (.+)$/is.exec(authorization ?? "")?.[1];
  return token === undefined ? null : operatorByHash(await sha256Hex(token), operators);
}

/**
 * Returns the operator whose token has this SHA-256 (hex), or null. It compares all digests in constant time,
 * so that nothing about tokens leaks.
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

/** Returns the operator of OPERATOR_LOGINS with this identity at an issuer of LOGIN_ISSUERS, or null. */
export function operatorOfLogin(
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
  logins: Config["operatorLogins"],
): Operator | null {
  const found = logins.find((one) => one.issuer === issuer && one.subject === subject);
  return found === undefined ? null : { name: found.name, role: found.role };
}

/**
 * Requests that this region makes for an operator's console, whose session was checked. They are known by
 * identity, so no client can add one.
 */
const operators = new WeakMap<Request, Operator>();

/** Marks `request` as this operator's. */
export function vouchForOperator(request: Request, operator: Operator): void {
  operators.set(request, operator);
}

/** Returns the operator of a marked request; null for others. */
export function vouchedOperator(request: Request): Operator | null {
  return operators.get(request) ?? null;
}
