export function evictOldest(known: Map<string, unknown> | Set<string>, most: number): void {
  const [oldest] = known.size < most ? [] : known.keys();
  if (oldest !== undefined) known.delete(oldest);
}
