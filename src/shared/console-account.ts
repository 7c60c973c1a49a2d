import { sha256 } from "./hash.ts";

/**
 * Returns the object name for the console sessions of a key or operator. It doesn't reveal the hash, so
 * cookies can contain it.
 */
export function consoleAccount(hash: string): string {
  return sha256(`console ${hash}`);
}
