import { sha256 } from "./hash.ts";

/**
 * The name of the object of all console sessions of a key or an operator, by the hash that stands for it. It says
 * nothing of that hash, so that a cookie may carry it.
 */
export function consoleAccount(hash: string): string {
  return sha256(`console ${hash}`);
}
