import { sha256 } from "./hash.ts";

/**
 * Returns the name of the object that stores an account's console sessions. Cookies can contain the
 * name, because it doesn't reveal the hash.
 */
export function consoleAccountName(hash: string): string {
  return sha256(`console ${hash}`);
}
