/** Deletes the oldest entry of a full cache. */
export function evictOldest(cache: Map<string, unknown> | Set<string>, sizeMax: number): void {
  const [oldest] = cache.size < sizeMax ? [] : cache.keys();
  if (oldest !== undefined) cache.delete(oldest);
}
