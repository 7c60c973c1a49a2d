import { sha256 } from "./hash.ts";

/**
 * Returns the object name of an account's console sessions. It doesn't reveal the hash, so cookies
 * can contain it.
 */
export function consoleAccount(hash: string): string {
  return sha256(`console ${hash}`);
}
