import { DAY_MS, HOUR_MS } from "../../shared/clock.ts";
import { refuse } from "../../shared/failure.ts";
import type { Refusal } from "../../shared/failure.ts";

type SignUpLimits = { readonly maxPerHour: number; readonly maxPerDayAndAddress: number };

const DAILY_SIGN_UPS_PER_IDENTITY = 3;

type SignUpAttempt = {
  readonly id: string;
  readonly address: string;
  readonly identity: string | null;
  readonly nowMs: number;
};

/**
 * Counts a sign-up. Returns false if the hourly limit, or the daily limit of the address or
 * identity, is reached.
 */
export async function takeSignUpSlot(
  db: D1Database,
  { id, address, identity, nowMs }: SignUpAttempt,
  { maxPerHour: anHour, maxPerDayAndAddress: aDayAnAddress }: SignUpLimits,
): Promise<boolean> {
  const [, taken] = await db.batch([
    db.prepare("DELETE FROM sign_ups WHERE at < ?").bind(nowMs - DAY_MS),
    db
      .prepare(
        `INSERT INTO sign_ups (id, address, at, identity) SELECT ?1, ?2, ?3, ?6
         WHERE (SELECT count(*) FROM sign_ups WHERE at > ?3 - ${HOUR_MS}) < ?4
           AND (SELECT count(*) FROM sign_ups WHERE at > ?3 - ${DAY_MS} AND address = ?2) < ?5
           AND (SELECT count(*) FROM sign_ups WHERE at > ?3 - ${DAY_MS} AND identity = ?6) < ${DAILY_SIGN_UPS_PER_IDENTITY}
         RETURNING id`,
      )
      .bind(id, address, nowMs, anHour, aDayAnAddress, identity),
  ]);
  return (taken?.results.length ?? 0) > 0;
}

/** Returns the salt of identity hashes. Stores `newSalt` if there is none. */
export async function readIdentitySalt(db: D1Database, newSalt: string): Promise<string> {
  const [, found] = await db.batch<{ after: string }>([
    db
      .prepare(
        "INSERT INTO cursors (name, after) VALUES ('promotion salt', ?) ON CONFLICT DO NOTHING",
      )
      .bind(newSalt),
    db.prepare("SELECT after FROM cursors WHERE name = 'promotion salt'"),
  ]);
  return found?.results[0]?.after ?? newSalt;
}

/**
 * A sign-up credit. `identity` is an HMAC of the person's identity. Each identity can get one
 * credit.
 */
export type SignUpPromotion = {
  readonly identity: string;
  readonly orgId: string;
  readonly amountMicro: number;
};

/**
 * Returns a statement that inserts a sign-up credit, unless the identity already had one or the
 * day's budget is used up.
 */
export function createInsertPromotionStatement(
  db: D1Database,
  { identity, orgId, amountMicro }: SignUpPromotion,
  aDayMicro: number,
  nowMs: number,
): D1PreparedStatement {
  const midnight = nowMs - (nowMs % DAY_MS);
  return db
    .prepare(
      `INSERT INTO promotions (identity, org_id, amount_micro, created_at) SELECT ?1, ?2, ?3, ?4
       WHERE ?3 + (SELECT coalesce(sum(amount_micro), 0) FROM promotions WHERE created_at >= ?5) <= ?6
       ON CONFLICT (identity) DO NOTHING`,
    )
    .bind(identity, orgId, amountMicro, nowMs, midnight, aDayMicro);
}

/** Returns the sign-up credit that an organization has not received yet. */
export function findOwedPromotion(db: D1Database, orgId: string): Promise<SignUpPromotion | null> {
  return db
    .prepare(
      `SELECT identity, org_id AS orgId, amount_micro AS amountMicro FROM promotions
       WHERE org_id = ? AND credited_at IS NULL`,
    )
    .bind(orgId)
    .first<SignUpPromotion>();
}

export async function recordPromotionCredit(
  db: D1Database,
  identity: string,
  nowMs: number,
): Promise<void> {
  await db
    .prepare("UPDATE promotions SET credited_at = ? WHERE identity = ?")
    .bind(nowMs, identity)
    .run();
}

export function createInsertPersonalOrganizationStatement(
  db: D1Database,
  personId: string,
  orgId: string,
): D1PreparedStatement {
  return db
    .prepare("INSERT INTO personal_organizations (person_id, org_id) VALUES (?, ?)")
    .bind(personId, orgId);
}

export async function hasPersonalOrganization(db: D1Database, personId: string): Promise<boolean> {
  const row = await db
    .prepare("SELECT 1 FROM personal_organizations WHERE person_id = ?")
    .bind(personId)
    .first();
  return row !== null;
}

export async function convertToTeam(db: D1Database, orgId: string): Promise<boolean> {
  const row = await db
    .prepare(
      "UPDATE organizations SET is_personal = 0 WHERE id = ? AND is_personal = 1 RETURNING id",
    )
    .bind(orgId)
    .first();
  return row !== null;
}

const OWNED_ORGANIZATIONS_MAX = 20;

export async function canCreateOrganization(db: D1Database, personId: string): Promise<boolean> {
  const row = await db
    .prepare(
      `SELECT count(*) AS owned FROM member_people JOIN members ON members.id = member_id
       WHERE person_id = ? AND removed_at IS NULL AND role = 'owner'`,
    )
    .bind(personId)
    .first<{ owned: number }>();
  return (row?.owned ?? 0) < OWNED_ORGANIZATIONS_MAX;
}

export function tooManyOrganizationsRefusal(): Refusal {
  const message = "You already own the maximum number of organizations.";
  return refuse({ kind: "conflict", message, param: null, code: "too_many_organizations" });
}
