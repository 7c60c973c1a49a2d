import { insertConsoleKey, mintConsoleKey } from "../keys/console-key.store.ts";
import type { ConsoleKey } from "../keys/console-key.store.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { micros } from "../../shared/money.ts";
import { createOrganization } from "../organizations/organizations.store.ts";
import { isReservedSlug } from "../organizations/organization.ts";
import type { StoredMember, StoredOrganization } from "../organizations/organization.ts";
import { memberActor } from "./people-call.ts";
import type { PeopleServices } from "./people-call.ts";
import { linkMemberToPerson, insertPerson, isIdentityInUse } from "./people.store.ts";
import { emailAddressOf } from "./person.ts";
import type { Identity, Person } from "./person.ts";
import {
  insertPersonalOrganization,
  insertPromotion,
  findOwedPromotion,
  recordPromotionCredited,
} from "./sign-up.store.ts";
import type { Promotion } from "./sign-up.store.ts";
import { randomBase62 } from "../../shared/id.ts";

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

export type CreatedOwner = { readonly orgId: string; readonly memberId: string };

/**
 * Creates a person's organization: first the wallet, then all rows in one batch. If the batch
 * fails, discards the wallet unless the organization may exist. Throws if the identity is taken.
 */
export async function createOrganizationWithWallet(
  services: PeopleServices,
  newOrganization: NewOrganization,
): Promise<Result<CreatedOwner>> {
  const { db, region, now: nowMs } = services;
  const { person, isPersonal } = newOrganization;
  const orgId = crypto.randomUUID();
  const role = "owner" as const;
  const email = emailAddressOf(person);
  const owner: StoredMember = { id: crypto.randomUUID(), orgId, email, role, createdAt: nowMs };
  const key = await mintConsoleKey(services);
  const wallet = services.wallet(orgId);
  const { epoch } = await wallet.create(orgId);
  const actor = memberActor(owner.id);
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
    if (isIdentityInUse(error)) await discardWallet(services, orgId);
    throw error;
  }
  if (!creation.ok) {
    await discardWallet(services, orgId);
    return creation;
  }
  if (newOrganization.isSuspended) await wallet.configure({ suspended: true, rpmLimit: null });
  services.takeEvents(orgId);
  return success({ orgId, memberId: owner.id });
}

function ownerStatements(
  { db, now: nowMs, signUp }: PeopleServices,
  { person, identity, isPersonal, promotedIdentity }: NewOrganization,
  { owner, key }: { readonly owner: StoredMember; readonly key: ConsoleKey },
): ReturnType<typeof insertPerson> {
  const { id: memberId, orgId } = owner;
  const promotion = { identity: promotedIdentity ?? "", orgId, amountMicro: signUp.creditMicro };
  return [
    ...(identity === null ? [] : insertPerson(db, person, identity)),
    linkMemberToPerson(db, { memberId, personId: person.id, cameBy: "sign_up" }, nowMs),
    insertConsoleKey(db, key, memberId, nowMs),
    ...(isPersonal ? [insertPersonalOrganization(db, person.id, orgId)] : []),
    ...(promotedIdentity === null
      ? []
      : [insertPromotion(db, promotion, signUp.maxCreditsPerDayMicro, nowMs)]),
  ];
}

async function discardWallet({ wallet }: PeopleServices, orgId: string): Promise<void> {
  await wallet(orgId)
    .discard()
    .catch((error: unknown) => {
      logWarning("wallet_not_discarded", { org_id: orgId, reason: errorMessageOf(error) });
    });
}

/** Credits the sign-up promotion. A retry has no effect, because its reference is the same. */
export async function creditPromotionOnce(services: PeopleServices, orgId: string): Promise<void> {
  const { db, wallet, now: nowMs } = services;
  const promotion: Promotion | null = await findOwedPromotion(db, orgId);
  if (promotion === null) return;
  const { identity, amountMicro } = promotion;
  const reference = `sign-up:${identity}`;
  const credit = { amountMicro: micros(amountMicro), reference, actor: SYSTEM_ACTOR };
  const credited = await wallet(orgId).credit(credit);
  if (credited.ok) await recordPromotionCredited(db, identity, nowMs);
}
