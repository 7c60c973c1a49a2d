import * as z from "zod/mini";
import type { KeySecret } from "../config.ts";
import type { Region } from "../lib/caller.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { mintId } from "../lib/id.ts";
import { isLimited, rowOfTerms } from "../lib/key-terms.ts";
import { mintKey } from "./api-key.ts";
import { RPM_LIMIT_DEFAULT, RPM_LIMIT_MAX } from "./key-record.ts";
import type { KeyRow } from "./key-record.ts";
import { newTerms, termFields } from "./terms.ts";

/** What a label of a key may be: 1 to 100 characters, no control characters, not only spaces. */
const keyNameSchema = z.string().check(
  z.maxLength(100),
  z.regex(/^[^\p{Cc}]*$/u, "must not contain control characters"),
  z.refine((name) => name.trim() !== "", "must not be empty"),
);

const rpmLimitSchema = z.int().check(z.minimum(1), z.maximum(RPM_LIMIT_MAX));

/** What anyone may choose of a new key beside its name; null is absent. */
export const newKeyChoices = {
  rpm_limit: z.nullish(rpmLimitSchema),
  scope: z.nullish(z.enum(["regional", "global"])),
};

/** The body of every call that creates a key. */
export const newKeySchema = z.object({ name: keyNameSchema, ...newKeyChoices, ...termFields });

/** What may be changed of a key that exists. */
export const keyChangeSchema = z.object({
  name: z.optional(keyNameSchema),
  rpm_limit: z.optional(rpmLimitSchema),
  ...termFields,
});

/** Where a key is made: its home, the secrets it is minted with, and the clock, Unix ms. */
export type Mint = {
  readonly region: Region;
  readonly keySecrets: readonly KeySecret[];
  readonly now: number;
  /** Whether a name is sold here: an id, an alias or `maker/*`. */
  readonly isModel: (name: string) => boolean;
};

/** A key that is in no book yet; `key` is shown once. */
export type FreshKey = { readonly row: KeyRow; readonly key: string };

/** Mints a key of this member with what was chosen, else 60 requests a minute in its own region. 400 with `param` for terms. */
export async function mintKeyOf(
  mint: Mint,
  member: { readonly id: string; readonly org_id: string },
  fields: z.infer<typeof newKeySchema>,
): Promise<Result<FreshKey>> {
  const terms = newTerms(fields, mint);
  if (!terms.ok) return terms;
  const scope = fields.scope ?? "regional";
  const { key, hash, prefix } = await mintKey({
    home: mint.region,
    scope,
    secrets: mint.keySecrets,
  });
  const row: KeyRow = {
    id: mintId("key_", mint.now),
    hash,
    org_id: member.org_id,
    member_id: member.id,
    name: fields.name,
    prefix,
    scope,
    rpm_limit: fields.rpm_limit ?? RPM_LIMIT_DEFAULT,
    created_at: mint.now,
    last_used_at: null,
    revoked_at: null,
    ...(isLimited(terms.value) && rowOfTerms(terms.value)),
  };
  return success({ row, key });
}
