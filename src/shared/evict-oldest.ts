/** Deletes the oldest entry if there are `sizeMax` entries, so that one more fits. */
export function evictOldest(cache: Map<string, unknown> | Set<string>, sizeMax: number): void {
  const [oldest] = cache.size < sizeMax ? [] : cache.keys();
  if (oldest !== undefined) cache.delete(oldest);
}
