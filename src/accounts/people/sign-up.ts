import { getNetworkOfAddress } from "../../shared/network.ts";
import { computeHmac } from "../keys/api-key.ts";
import { assert } from "../../shared/assert.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import { mintId, randomBase62 } from "../../shared/id.ts";
import { callObject } from "../../shared/reach-object.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { createMemberActor } from "./people-call.ts";
import type { PeopleServices } from "./people-call.ts";
import {
  isIdentityInUseError,
  createLinkMemberStatement,
  createInsertPersonStatements,
} from "./people.store.ts";
import { emailAddressOf } from "./person.ts";
import type { Identity, Person } from "./person.ts";
import {
  readIdentitySalt,
  takeSignUpSlot,
  createInsertPersonalOrganizationStatement,
  createInsertPromotionStatement,
  findOwedPromotion,
  recordPromotionCredit,
} from "./sign-up.store.ts";
import { createInsertConsoleKeyStatement, mintConsoleKey } from "../keys/console-key.store.ts";
import type { ConsoleKey } from "../keys/console-key.store.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import { micros } from "../../shared/money.ts";
import { createOrganization } from "../organizations/organizations.store.ts";
import { isReservedSlug } from "../organizations/organization.ts";
import type { StoredMember, StoredOrganization } from "../organizations/organization.ts";

/** Minimum age (ms) of an account that gets the sign-up credit. */
const ACCOUNT_AGE_MS = 30 * 86_400_000;

type SignUpRequest = {
  readonly identity: Identity;
  readonly name: string;
  /** The person's verified address. Null prevents the sign-up. */
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
): Promise<Result<(CreatedOrganizationIds & { readonly person: Person }) | null>> {
  const { db, now: nowMs, signUp: rules } = services;
  if (rules.mode === "off") return refuse({ kind: "login_refused", why: "unknown" });
  if (email === null) return refuse({ kind: "login_refused", why: "unproven" });
  const identityJson = JSON.stringify([identity.realm, identity.issuer, identity.subject]);
  const slot = await countSignUp(services, "address", getNetworkOfAddress(address), identityJson);
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
    if (isIdentityInUseError(error)) return success(null);
    throw error;
  }
}

/** Counts a sign-up. Fails if there were too many. */
export async function countSignUp(
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

/**
 * Credits an organization's sign-up promotion. Logs failures; the next login retries. Retries credit
 * it only once, because they have the same reference.
 */
export async function creditPromotion(
  { db, wallet, now: nowMs }: PeopleServices,
  orgId: string,
): Promise<void> {
  try {
    const promotion = await findOwedPromotion(db, orgId);
    if (promotion === null) return;
    const { identity, amountMicro } = promotion;
    const reference = `sign-up:${identity}`;
    const credit = { amountMicro: micros(amountMicro), reference, actor: SYSTEM_ACTOR };
    const credited = await wallet(orgId).credit(credit);
    if (credited.ok) await recordPromotionCredit(db, identity, nowMs);
  } catch (error) {
    logWarning("promotion_not_credited", { org_id: orgId, reason: errorMessageOf(error) });
  }
}

/**
 * Returns an identity's hash, which is kept after the person is erased. The salt is in D1, because
 * KEY_SECRETS rotate.
 */
async function promotionTag(db: D1Database, identityJson: string): Promise<string> {
  return (
    await hmacSha256(
      await importHmacKey(await readIdentitySalt(db, randomBase62(43))),
      identityJson,
    )
  ).toHex();
}

async function identityTag(
  { keySecrets, region }: PeopleServices,
  label: string,
  text: string,
): Promise<string> {
  const secret = keySecrets[0];
  assert(secret !== undefined, "a tag needs a secret");
  return (await computeHmac(secret, `sign-up ${region} ${label}`, text)).toHex();
}

const SLUG_MAX = 32;

function toSlug(name: string): string | null {
  const folded = name
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-");
  const slug = trimHyphens(trimHyphens(folded).slice(0, SLUG_MAX));
  return slug.length < 3 || isReservedSlug(slug) ? null : slug;
}

function* candidateSlugs(name: string): Generator<string> {
  const ownSlug = toSlug(name);
  const base = ownSlug ?? "org";
  if (ownSlug !== null) yield ownSlug;
  const last = ownSlug === null ? 0 : 9;
  for (let n = 2; n <= last; n++) yield `${trimHyphens(base.slice(0, SLUG_MAX - 2))}-${n}`;
  for (let n = 0; n < 3; n++) {
    yield `${trimHyphens(base.slice(0, SLUG_MAX - 7))}-${randomBase62(6).toLowerCase()}`;
  }
}

function trimHyphens(text: string): string {
  return text.replaceAll(/^-+|-+$/g, "");
}

type NewOrganization = {
  readonly person: Person;
  readonly identity: Identity | null;
  readonly name: string;
  readonly isPersonal: boolean;
  readonly isSuspended: boolean;
  readonly promotedIdentity: string | null;
};

export type CreatedOrganizationIds = { readonly orgId: string; readonly memberId: string };

/**
 * Creates a person's organization: the wallet, then all rows in one batch. If the batch fails,
 * discards the wallet unless the organization may exist. Throws if the identity is taken.
 */
export async function createOrganizationWithWallet(
  services: PeopleServices,
  newOrganization: NewOrganization,
): Promise<Result<CreatedOrganizationIds>> {
  const { db, region, now: nowMs } = services;
  const { person, isPersonal } = newOrganization;
  const orgId = crypto.randomUUID();
  const role = "owner" as const;
  const email = emailAddressOf(person);
  const owner: StoredMember = { id: crypto.randomUUID(), orgId, email, role, createdAt: nowMs };
  const key = await mintConsoleKey(services);
  const wallet = services.wallet(orgId);
  const { epoch } = await wallet.create(orgId);
  if (newOrganization.isSuspended) {
    // The wallet is suspended before the rows exist, so that a failure leaves no active wallet.
    const suspension = await callObject(() => wallet.configure({ suspended: true }));
    if (!suspension.ok) {
      await discardWallet(services, orgId);
      return suspension;
    }
  }
  const actor = createMemberActor(owner.id);
  const statements = ownerStatements(services, newOrganization, { owner, key });
  const organization: Omit<StoredOrganization, "slug"> = {
    id: orgId,
    name: newOrganization.name,
    region,
    isPersonal: isPersonal ? 1 : 0,
    status: newOrganization.isSuspended ? "suspended" : "active",
    rpmLimit: null,
    priceList: null,
    createdAt: nowMs,
  };
  let creation: Result<null> = refuse({ kind: "overloaded" });
  try {
    for (const slug of candidateSlugs(newOrganization.name)) {
      const newRows = {
        organization: { ...organization, slug },
        owner,
        epoch,
        additionalStatements: statements,
        actor,
      };
      creation = await createOrganization(db, newRows);
      if (creation.ok) break;
    }
  } catch (error) {
    if (isIdentityInUseError(error)) await discardWallet(services, orgId);
    throw error;
  }
  if (!creation.ok) {
    await discardWallet(services, orgId);
    return creation;
  }
  services.takeEvents(orgId);
  return success({ orgId, memberId: owner.id });
}

function ownerStatements(
  { db, now: nowMs, signUp: rules }: PeopleServices,
  { person, identity, isPersonal, promotedIdentity }: NewOrganization,
  { owner, key }: { readonly owner: StoredMember; readonly key: ConsoleKey },
): ReturnType<typeof createInsertPersonStatements> {
  const { id: memberId, orgId } = owner;
  const promotion = { identity: promotedIdentity ?? "", orgId, amountMicro: rules.creditMicro };
  return [
    ...(identity === null ? [] : createInsertPersonStatements(db, person, identity)),
    createLinkMemberStatement(db, { memberId, personId: person.id, cameBy: "sign_up" }, nowMs),
    createInsertConsoleKeyStatement(db, key, memberId, nowMs),
    ...(isPersonal ? [createInsertPersonalOrganizationStatement(db, person.id, orgId)] : []),
    ...(promotedIdentity === null
      ? []
      : [createInsertPromotionStatement(db, promotion, rules.maxCreditsPerDayMicro, nowMs)]),
  ];
}

export async function discardWallet(
  { wallet }: Pick<PeopleServices, "wallet">,
  orgId: string,
): Promise<void> {
  await wallet(orgId)
    .discard()
    .catch((error: unknown) => {
      logWarning("wallet_not_discarded", { org_id: orgId, reason: errorMessageOf(error) });
    });
}
