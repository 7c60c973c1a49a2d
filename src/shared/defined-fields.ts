type DefinedFields<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> };

/** Returns an object's fields without those that are undefined. */
export function definedFields<T extends object>(fields: T): DefinedFields<T> {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as DefinedFields<T>;
}
