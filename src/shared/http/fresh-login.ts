/**
 * Whether a call in the console requires a login within the last ten minutes. A record lists values
 * by field: no login is needed if each changed field has one of its values, which only lower
 * limits.
 */
export type FreshLogin = "always" | "never" | Readonly<Record<string, readonly unknown[]>>;

/** Returns the row of a call that needs no fresh login, or only for some bodies. */
export function withoutLogin<Row>(
  row: Row,
  freshLogin: FreshLogin = "never",
): Row & { readonly freshLogin: FreshLogin } {
  return { ...row, freshLogin };
}
