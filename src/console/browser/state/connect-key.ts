import { cell } from "./cell.ts";
import { session } from "./session.ts";

type HeldKey = { readonly secret: string; readonly id: string | null };

/** The key of the Connect page. It stays in this tab's memory until logout or reload. */
export const connectKey = cell<HeldKey | null>(null);

let account: string | null | undefined;
session.watch(() => {
  const who = session.get();
  const now = who ? `${who.organization?.id ?? ""} ${who.key?.id ?? ""}` : null;
  if (now !== account) connectKey.set(null);
  account = now;
});
