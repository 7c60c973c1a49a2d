import type { Config, OperatorRole } from "../shared/config/config.ts";
import { sha256Hex } from "../shared/hash.ts";

export type Operator = { readonly name: string; readonly role: OperatorRole };

/**
 * Returns the operator of a bearer token. The scheme is case-insensitive and followed by one space.
 */
export async function findOperator(
  authorization: string | null,
  operators: Config["operators"],
): Promise<Operator | null> {
  const token = /^bearer (.+)$/is.exec(authorization ?? "")?.[1];
  return token === undefined ? null : findOperatorByHash(await sha256Hex(token), operators);
}

/** Returns the operator whose token has this hash. Compares all tokens in constant time. */
export async function findOperatorByHash(
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

export function findOperatorByLogin(
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
  logins: Config["operatorLogins"],
): Operator | null {
  const found = logins.find((one) => one.issuer === issuer && one.subject === subject);
  return found === undefined ? null : { name: found.name, role: found.role };
}

/** The operators of requests dispatched by the console. */
export const operatorByRequest = new WeakMap<Request, Operator>();
