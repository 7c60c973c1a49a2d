import * as z from "zod/mini";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import { labelSchema } from "../../shared/label.ts";
import type { Key } from "../../shared/key.ts";
import { hasAnyKeyTerms, keyTermFields, EMPTY_KEY_TERMS } from "../../shared/key-terms.ts";
import { mintKey } from "./api-key.ts";
import { ZERO_KEY_SPEND, RPM_LIMIT_DEFAULT, RPM_LIMIT_MAX } from "./stored-key.ts";
import type { StoredKey } from "./stored-key.ts";

import { applyTermFields } from "./terms.ts";
import type { KeyTermsContext } from "./terms.ts";
import type { KeyServices } from "./revocation.ts";

const keyNameSchema = labelSchema(100);

const rpmLimitSchema = z.int().check(z.minimum(1), z.maximum(RPM_LIMIT_MAX));

export const newKeyOptionFields = {
  rpm_limit: z.nullish(rpmLimitSchema),
  scope: z.nullish(z.enum(["regional", "global"])),
};

export const newKeySchema = z.object({
  name: keyNameSchema,
  ...newKeyOptionFields,
  ...keyTermFields,
});

export const keyChangeSchema = z.object({
  name: z.optional(keyNameSchema),
  rpm_limit: z.optional(rpmLimitSchema),
  ...keyTermFields,
});

type KeyMinter = KeyTermsContext & Pick<KeyServices, "region" | "keySecrets">;

type NewKey = { readonly storedKey: StoredKey; readonly key: string };

export async function mintMemberKey(
  minter: KeyMinter,
  member: Pick<Key, "memberId" | "orgId">,
  fields: z.infer<typeof newKeySchema>,
): Promise<Result<NewKey>> {
  const terms = applyTermFields(EMPTY_KEY_TERMS, fields, minter);
  if (!terms.ok) return terms;
  const scope = fields.scope ?? "regional";
  const { key, hash, prefix } = await mintKey({
    home: minter.region,
    scope,
    secrets: minter.keySecrets,
  });
  const booked: StoredKey = {
    keyId: mintId("key_", minter.now),
    keyHash: hash,
    orgId: member.orgId,
    memberId: member.memberId,
    name: fields.name,
    prefix,
    scope,
    rpmLimit: fields.rpm_limit ?? RPM_LIMIT_DEFAULT,
    createdAt: minter.now,
    lastUsedAt: null,
    revokedAt: null,
    terms: terms.value,
    changedAt: hasAnyKeyTerms(terms.value) ? minter.now : null,
    secrets: null,
    spend: ZERO_KEY_SPEND,
  };
  return success<NewKey>({ storedKey: booked, key });
}
