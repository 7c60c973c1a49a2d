import type { Config } from "../config.ts";

/**
 * The operator whose token `Authorization` names as `Bearer <token>`: the scheme in any case, one space, the
 * token to the letter; null for nobody.
 */
export async function operatorOf(
  authorization: string | null,
  operators: Config["operators"],
): Promise<string | null> {
  const token = /^bearer (.+)$/is.exec(authorization ?? "")?.[1];
  return token === undefined ? null : operatorHashed(await sha256Hex(token), operators);
}

/**
 * The operator whose token has this SHA-256 (in hex), or null. Compares digests in constant time, all of them
 * always, so neither length nor content of a token leaks, nor whose it is.
 */
export async function operatorHashed(
  hash: string,
  operators: Config["operators"],
): Promise<string | null> {
  const sent = encoder.encode(hash);
  const hashes = await Promise.all(operators.map(({ token }) => sha256Hex(token)));
  const equal = hashes.map((one) => crypto.subtle.timingSafeEqual(sent, encoder.encode(one)));
  const found = operators[equal.indexOf(true)];
  return found === undefined || found.token === "" ? null : found.name;
}

const encoder = new TextEncoder();

/** SHA-256 of a text, in hex. */
export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  return new Uint8Array(digest).toHex();
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
