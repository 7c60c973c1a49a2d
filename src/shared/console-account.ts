import { sha256HexSync } from "./hash.ts";

/**
 * Returns the name of the object with an account's console sessions. The name doesn't reveal the
 * hash, so cookies can contain it.
 */
export function consoleAccountName(hash: string): string {
  return sha256HexSync(`console ${hash}`);
}
