import type * as z from "zod/mini";
import { refuse } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { syncWithDatabase } from "../../shared/sync-with-database.ts";
import { areKeyTermsTighter, keyTermsToJson } from "../../shared/key-terms.ts";
import type { StoredKey } from "./stored-key.ts";
import { changeKey } from "./keys.store.ts";
import type { keyChangeSchema } from "./new-key.ts";
import type { KeyServices } from "./revocation.ts";
import { applyTermFields } from "./terms.ts";
import type { KeyTermsContext } from "./terms.ts";

const ROUNDS_MAX = 5;

type KeyChangeRequest = {
  readonly find: () => Promise<StoredKey | null>;
  readonly fields: z.infer<typeof keyChangeSchema>;
  readonly refuseRaisedLimits: (key: StoredKey) => Promise<Refusal | null>;
};

/**
 * Changes a key in D1, then in its object and wallet, where the change applies immediately. A retry
 * completes a partial change. Throws if D1 fails.
 */
export async function changeKeyEverywhere(
  services: KeyServices & KeyTermsContext,
  { find, fields, refuseRaisedLimits }: KeyChangeRequest,
): Promise<Result<StoredKey>> {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const before = await find();
    if (before === null) return refuse({ kind: "not_found", message: "No such key." });
    const terms = applyTermFields(before.terms, fields, services);
    if (!terms.ok) return terms;
    const { name = before.name, rpm_limit: rpmLimit = before.rpmLimit } = fields;
    const raisesLimits =
      rpmLimit > before.rpmLimit || !areKeyTermsTighter(before.terms, terms.value, services.names);
    const refusal = raisesLimits ? await refuseRaisedLimits(before) : null;
    if (refusal !== null) return refusal;
    const change = { name, rpmLimit, terms: terms.value };
    const changed = await changeKey(services.db, before, change, services);
    if (changed !== null) return notifyObjects(services, changed, find);
  }
  return refuse({ kind: "overloaded" });
}

function notifyObjects(
  { register, wallet }: KeyServices,
  changed: StoredKey,
  reread: () => Promise<StoredKey | null>,
): Promise<Result<StoredKey>> {
  return syncWithDatabase(changed, {
    // The key object changes first, so that the wallet's later lookups return the new data.
    send: async ({ keyHash, orgId, rpmLimit, terms }) => {
      await register(keyHash).setLimit(rpmLimit);
      await register(keyHash).setTerms(terms);
      const limitChange = await wallet(orgId).setKeyLimit(keyHash, rpmLimit);
      return limitChange.ok ? wallet(orgId).setKeyTerms(keyHash, terms) : limitChange;
    },
    reread,
    isSame: (one, other) =>
      one.rpmLimit === other.rpmLimit && keyTermsToJson(one.terms) === keyTermsToJson(other.terms),
  });
}
