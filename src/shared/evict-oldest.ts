/** Room for one more among what is remembered, of which there are at most so many: what came first goes. */
export function evictOldest(known: Map<string, unknown> | Set<string>, most: number): void {
  const [oldest] = known.size < most ? [] : known.keys();
  if (oldest !== undefined) known.delete(oldest);
}
