const SLOTS = 8;
/** What has a colour, by kind: the same name keeps it on every page. */
const slots = new Map<string, number>();

/**
 * The colour of a name: one of eight in the order in which names are first asked for, which is by their
 * spend; later ones have none of their own (null, grey).
 */
export function slotOf(
  kind: "model" | "provider" | "key" | "user",
  name: string | null,
): number | null {
  if (name === "other") return null;
  const id = `${kind} ${name ?? ""}`;
  const known = slots.get(id);
  if (known !== undefined) return known;
  const taken = [...slots.keys()].filter((other) => other.startsWith(`${kind} `)).length;
  if (taken >= SLOTS) return null;
  slots.set(id, taken);
  return taken;
}
