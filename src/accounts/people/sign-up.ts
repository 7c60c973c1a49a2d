import { networkOf } from "../../shared/network.ts";
import { hmacOf, sign } from "../keys/api-key.ts";
import { assert } from "../../shared/assert.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import { mintId, randomBase62 } from "../../shared/id.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { createOrganizationWithWallet, creditPromotionOnce } from "./new-organization.ts";
import type { CreatedOwner } from "./new-organization.ts";
import type { PeopleServices } from "./people-call.ts";
import { isIdentityInUse } from "./people.store.ts";
import type { Identity, Person } from "./person.ts";
import { identitySaltOf, takeSignUpSlot } from "./sign-up.store.ts";

/** Minimum age in ms of an account that gets the sign-up credit. */
const ACCOUNT_AGE_MS = 30 * 86_400_000;

type SignUpRequest = {
  readonly identity: Identity;
  readonly name: string;
  /** The verified address. Without it, the person can't sign up. */
  readonly email: string | null;
  readonly madeAt: number | null;
  readonly address: string;
};

/**
 * Creates a person, their personal organization, its wallet and, if eligible, a credit. Fails with
 * `login_refused` if sign-up is off, no address is verified, or too many people signed up. Returns
 * null if the identity exists.
 */
export async function signUp(
  services: PeopleServices,
  { identity, name, email, address, madeAt }: SignUpRequest,
): Promise<Result<(CreatedOwner & { readonly person: Person }) | null>> {
  const { db, now: nowMs, signUp: rules } = services;
  if (rules.mode === "off") return refuse({ kind: "login_refused", why: "unknown" });
  if (email === null) return refuse({ kind: "login_refused", why: "unproven" });
  const identityJson = JSON.stringify([identity.realm, identity.issuer, identity.subject]);
  const slot = await takeSignUpSlots(services, "address", networkOf(address), identityJson);
  if (!slot.ok) return slot;
  const person: Person = {
    id: mintId("per_", nowMs),
    name,
    email,
    isEmailProven: 1,
    sessionsFrom: nowMs,
  };
  const isNew = madeAt !== null && nowMs - madeAt < ACCOUNT_AGE_MS;
  const promotedIdentity =
    rules.creditMicro > 0 && !isNew ? await promotionTag(db, identityJson) : null;
  const isSuspended = rules.mode === "approve";
  try {
    const creation = await createOrganizationWithWallet(services, {
      person,
      identity,
      name,
      promotedIdentity,
      isSuspended,
      isPersonal: true,
    });
    if (!creation.ok) return creation;
    if (promotedIdentity !== null) await creditPromotion(services, creation.value.orgId);
    return success({ ...creation.value, person });
  } catch (error) {
    if (isIdentityInUse(error)) return success(null);
    throw error;
  }
}

export async function takeSignUpSlots(
  services: PeopleServices,
  label: "address" | "person",
  subject: string,
  identityText: string | null = null,
): Promise<Result<null>> {
  const { db, now: nowMs, signUp: rules } = services;
  const address = await identityTag(services, label, subject);
  const identity =
    identityText === null ? null : await identityTag(services, "identity", identityText);
  const attempt = { id: mintId("sup_", nowMs), address, identity, nowMs };
  const hasSlot = await takeSignUpSlot(db, attempt, rules);
  return hasSlot ? success(null) : refuse({ kind: "login_refused", why: "too_many" });
}

/** Credits an organization's sign-up promotion. Logs failures, and the next login retries. */
export async function creditPromotion(services: PeopleServices, orgId: string): Promise<void> {
  try {
    await creditPromotionOnce(services, orgId);
  } catch (error) {
    logWarning("promotion_not_credited", { org_id: orgId, reason: errorMessageOf(error) });
  }
}

/**
 * Returns a hash of an identity, which is kept after the person is erased. Its salt is in D1,
 * because KEY_SECRETS rotate.
 */
async function promotionTag(db: D1Database, identityJson: string): Promise<string> {
  return (
    await hmacSha256(await importHmacKey(await identitySaltOf(db, randomBase62(43))), identityJson)
  ).toHex();
}

async function identityTag(
  { keySecrets, region }: PeopleServices,
  label: string,
  text: string,
): Promise<string> {
  const secret = keySecrets[0];
  assert(secret !== undefined, "a tag needs a secret");
  return (await sign(await hmacOf(secret), `sign-up ${region} ${label}`, text)).toHex();
}
