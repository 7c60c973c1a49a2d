/** Throws when `condition` is false: a bug in this program, never a caller's mistake. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
