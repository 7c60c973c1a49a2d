import { ask } from "./transport.ts";
import type { AdminClient, Call } from "./transport.ts";
import { dollars, fillIn } from "./words.ts";
import type { JsonRecord } from "./words.ts";

/** Largest amount that `credits add` and `credits correct` post without `--yes`: 10,000 dollars. */
const UNCONFIRMED_MICRO_MAX = 10_000_000_000;

/** Returns the effect of revoking a key, or null if it is already revoked. */
export async function confirmRevocation(
  admin: AdminClient,
  { path }: Call,
): Promise<string | null> {
  const key = await ask<JsonRecord>(admin, { method: "GET", path });
  if (key["revoked"] === true) return null;
  return fillIn(
    "This permanently revokes the key {name} ({prefix}, last used: {last_used_at}).",
    key,
  );
}

/** Returns the amount of credits if it needs confirmation, else null. */
export async function confirmLargeCredits(_: AdminClient, { body }: Call): Promise<string | null> {
  const amount = Number((body as JsonRecord | undefined)?.["amount_micro"]);
  if (Math.abs(amount) <= UNCONFIRMED_MICRO_MAX) return null;
  return `This posts ${dollars(amount)} dollars, more than ${dollars(UNCONFIRMED_MICRO_MAX)}.`;
}

/** Returns the effect of closing an organization, or null if it is already closed. */
export async function confirmClosing(admin: AdminClient, { path }: Call): Promise<string | null> {
  const organization = await ask<JsonRecord>(admin, {
    method: "GET",
    path: path.split("?")[0] ?? path,
  });
  if ((organization["closed_at"] ?? null) !== null) return null;
  return fillIn(
    "This closes {slug} ({name}): its keys, sessions and logins stop working. You can restore it for 7 days.",
    organization,
  );
}
