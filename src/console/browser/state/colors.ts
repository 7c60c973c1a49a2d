const SLOTS_MAX = 6;

function hashOf(name: string): number {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003;
  return hash % SLOTS_MAX;
}

/**
 * Assigns each name a color slot by hash, or the next free slot. Names after the sixth, and
 * "other", are gray (null).
 */
export function assignColors(
  names: readonly (string | null)[],
): (name: string | null) => number | null {
  const slots = new Map<string | null, number>();
  const usedSlots = new Set<number>();
  for (const name of names) {
    if (name === "other" || usedSlots.size >= SLOTS_MAX || slots.has(name)) continue;
    let slot = hashOf(name ?? "");
    while (usedSlots.has(slot)) slot = (slot + 1) % SLOTS_MAX;
    usedSlots.add(slot);
    slots.set(name, slot);
  }
  return (name) => slots.get(name) ?? null;
}
