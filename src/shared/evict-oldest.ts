/** Evicts the oldest entry if there is no room for one more. */
export function evictOldest(known: Map<string, unknown> | Set<string>, most: number): void {
  const [oldest] = known.size < most ? [] : known.keys();
  if (oldest !== undefined) known.delete(oldest);
}
