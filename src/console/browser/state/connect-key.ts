import { cell } from "./cell.ts";
import { session } from "./session.ts";

/** A key whose secret is at hand, to be filled into blocks; `id`: null where it is not known which key it is. */
export type HeldKey = { readonly secret: string; readonly id: string | null };

/** The key that the page Connect fills in: in this tab's memory alone, gone with the log-in and at a reload. */
export const connectKey = cell<HeldKey | null>(null);

let account: string | null | undefined;
session.watch(() => {
  const who = session.get();
  const now = who ? `${who.organization?.id ?? ""} ${who.key?.id ?? ""}` : null;
  if (now !== account) connectKey.set(null);
  account = now;
});
