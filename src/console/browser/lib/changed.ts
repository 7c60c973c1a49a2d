/** Returns the changed fields, so that saving a form doesn't undo another person's changes. */
export function selectChangedFields<T extends object>(before: T, after: T): Partial<T> {
  const known = new Map<string, unknown>(Object.entries(before));
  const differing = Object.entries(after).filter(
    ([field, value]) => JSON.stringify(value) !== JSON.stringify(known.get(field)),
  );
  return Object.fromEntries(differing) as Partial<T>;
}
