import { hmacOf, sign } from "../keys/api-key.ts";
import { assert } from "../../shared/assert.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { hmacKey, hmacSha256 } from "../../shared/hmac.ts";
import { mintId, randomBase62 } from "../../shared/id.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { createOrganizationWithWallet, postPromotionCredit } from "./new-organization.ts";
import type { CreatedOwner } from "./new-organization.ts";
import type { PeopleServices } from "./people-call.ts";
import { isIdentityTaken } from "./people.store.ts";
import type { Identity, Person } from "./person.ts";
import { promotionSalt, takeSignUpSlot } from "./sign-up.store.ts";

/** An account that is younger gets no first credit. */
const ACCOUNT_AGE_MS = 30 * 86_400_000;

/** Who signs up: what their issuer says, their proven address and their network's. */
type SigningUp = {
  readonly identity: Identity;
  readonly name: string;
  /** Null: the issuer confirmed none, which is no sign-up. */
  readonly email: string | null;
  /** When their account was made there, Unix ms; null: not told. */
  readonly madeAt: number | null;
  readonly address: string;
};

/**
 * A person, their personal organization and its wallet; a first credit where the operator gives one. `login_refused`:
 * sign-up is off (`unknown`), no address is proven, or too many sign up. Null when the identity is somebody's by now: a
 * second click, which logs in. Throws when D1 fails.
 */
export async function signUp(
  services: PeopleServices,
  { identity, name, email, address, madeAt }: SigningUp,
): Promise<Result<(CreatedOwner & { readonly person: Person }) | null>> {
  const { db, now: nowMs, signUp: rules } = services;
  if (rules.mode === "off") return refuse({ kind: "login_refused", why: "unknown" });
  if (email === null) return refuse({ kind: "login_refused", why: "unproven" });
  const paced = await takeSignUpSlots(services, "address", network(address));
  if (!paced.ok) return paced;
  const person: Person = {
    id: mintId("per_", nowMs),
    name,
    email,
    isEmailProven: 1,
    sessionsFrom: nowMs,
  };
  const words = JSON.stringify([identity.realm, identity.issuer, identity.subject]);
  const isNew = madeAt !== null && nowMs - madeAt < ACCOUNT_AGE_MS;
  const promoted = rules.creditMicro > 0 && !isNew ? await promotionTag(db, words) : null;
  const isSuspended = rules.mode === "approve";
  try {
    const made = await createOrganizationWithWallet(services, {
      person,
      identity,
      name,
      promoted,
      isSuspended,
      isPersonal: true,
    });
    if (!made.ok) return made;
    if (promoted !== null) await creditPromotion(services, made.value.orgId);
    return success({ ...made.value, person });
  } catch (error) {
    if (isIdentityTaken(error)) return success(null);
    throw error;
  }
}

/** A place among the sign-ups of the hour, and of who asks in the day. */
export async function takeSignUpSlots(
  services: PeopleServices,
  label: "address" | "person",
  who: string,
): Promise<Result<null>> {
  const { db, now: nowMs, signUp: rules } = services;
  const address = await tagOf(services, label, who);
  const place = { id: mintId("sup_", nowMs), address, nowMs };
  const hasPlace = await takeSignUpSlot(db, place, rules);
  return hasPlace ? success(null) : refuse({ kind: "login_refused", why: "too_many" });
}

/** What fails now is tried again at the next log-in. */
export async function creditPromotion(services: PeopleServices, orgId: string): Promise<void> {
  try {
    await postPromotionCredit(services, orgId);
  } catch (error) {
    logWarning("promotion_not_credited", { org_id: orgId, reason: reasonOf(error) });
  }
}

/** What outlives the person: salted with what the book alone has, for KEY_SECRETS are replaced. */
async function promotionTag(db: D1Database, words: string): Promise<string> {
  return (
    await hmacSha256(await hmacKey(await promotionSalt(db, randomBase62(43))), words)
  ).toHex();
}

/** What stands for something that is not kept. */
async function tagOf(
  { keySecrets, region }: PeopleServices,
  label: string,
  text: string,
): Promise<string> {
  const secret = keySecrets[0];
  assert(secret !== undefined, "a tag needs a secret");
  return (await sign(await hmacOf(secret), `sign-up ${region} ${label}`, text)).toHex();
}

/** An IPv4 address, or the /64 of an IPv6 one. */
function network(address: string): string {
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const before = head.split(":");
  const after = tail === undefined ? [] : tail.split(":");
  const missing = tail === undefined ? 0 : 8 - before.length - after.length;
  const all = [...before, ...Array.from({ length: Math.max(0, missing) }, () => "0"), ...after];
  return all
    .slice(0, 4)
    .map((part) => part.padStart(4, "0"))
    .join(":");
}
