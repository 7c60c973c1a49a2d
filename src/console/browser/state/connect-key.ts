import { cell } from "./cell.ts";
import { session } from "./session.ts";

/** A key with its secret. A null `id` means the key is unknown. */
export type HeldKey = { readonly secret: string; readonly id: string | null };

/** The Connect page's key. Exists only in this tab's memory, until logout or reload. */
export const connectKey = cell<HeldKey | null>(null);

let account: string | null | undefined;
session.watch(() => {
  const who = session.get();
  const now = who ? `${who.organization?.id ?? ""} ${who.key?.id ?? ""}` : null;
  if (now !== account) connectKey.set(null);
  account = now;
});
