import * as z from "zod/mini";
import { parseQuery, wholeNumber } from "../http/parse-body.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import type { BookedKey } from "./booked-key.ts";
import { LISTED_REVOKED, listKeys, listRevokedKeys } from "./keys.store.ts";
import type { KeyOwner, ListPlace } from "./keys.store.ts";

/** A page's last key as `next_after` names it: Unix ms, a dot, its id. */
const place = z.pipe(
  z.string("must be given once").check(z.regex(/^\d{1,15}\.[^.]{1,100}$/, "must be a next_after")),
  z.transform((text): ListPlace => {
    const [createdAt = "", id = ""] = text.split(".");
    return { createdAt: Number(createdAt), keyId: id };
  }),
);

/** Which keys are listed: all live ones with the newest revoked, or, a page at a time, revoked ones. */
const query = z.object({
  revoked: z._default(z.enum(["true", "false"]), "false"),
  limit: wholeNumber(1, LISTED_REVOKED, LISTED_REVOKED),
  after: z.optional(place),
});
export type KeysQuery = z.infer<typeof query>;

/** `revoked`, `limit` and `after` of a list's URL; 400 with `param`. */
export function keysQuery(url: string): Result<KeysQuery> {
  const fields = parseQuery(query, url);
  return fields.ok ? success(fields.value) : fields;
}

/** Keys of one answer, and, where more revoked ones may follow, what asks for them with `revoked=true`. */
export type KeysPage = { readonly keys: readonly BookedKey[]; readonly nextAfter: string | null };

/** What the book lists; throws when D1 fails. */
export async function listedKeys(
  db: D1Database,
  owner: KeyOwner,
  { revoked, limit, after }: KeysQuery,
): Promise<KeysPage> {
  const isPage = revoked === "true";
  const keys = isPage
    ? await listRevokedKeys(db, owner, { limit, after: after ?? null })
    : await listKeys(db, owner);
  const ended = keys.filter((key) => key.revokedAt !== null);
  const last = ended.length === (isPage ? limit : LISTED_REVOKED) ? ended.at(-1) : undefined;
  return { keys, nextAfter: last === undefined ? null : `${last.createdAt}.${last.keyId}` };
}

/** The JSON of a list of keys, each as `record` shows it. */
export function keysView(
  { keys, nextAfter }: KeysPage,
  record: (key: BookedKey) => object,
): Readonly<Record<string, unknown>> {
  return { keys: keys.map(record), ...(nextAfter !== null && { next_after: nextAfter }) };
}
