import type { Actor, ChangeContext } from "../../shared/event.ts";
import { insertChangeEventStatement, insertEventOnce } from "../../shared/events.store.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { createInsertMemberStatement, createMemberCreatedEventStatement } from "./members.store.ts";
import type { StoredMember, StoredOrganization, OrganizationChange } from "./organization.ts";

type NewOrganization = {
  readonly organization: StoredOrganization;
  readonly owner: StoredMember;
  readonly epoch: string;
  readonly additionalStatements: readonly D1PreparedStatement[];
  readonly actor: Actor;
};

export const ORGANIZATION_COLUMNS = `id, name, slug, region, is_personal AS isPersonal, status,
  rpm_limit AS rpmLimit, price_list AS priceList, created_at AS createdAt`;

/**
 * Creates an organization, its owner and a zero balance in one batch. Fails with `conflict` if the
 * slug is taken. If D1 throws, the organization may exist.
 */
export async function createOrganization(
  db: D1Database,
  { organization, owner, epoch, additionalStatements, actor }: NewOrganization,
): Promise<Result<null>> {
  try {
    await db.batch([
      insertOrganizationStatement(db, organization),
      organizationCreatedStatement(db, organization, actor),
      createInsertMemberStatement(db, owner),
      createMemberCreatedEventStatement(db, owner, actor),
      db
        .prepare(
          `INSERT INTO balances (org_id, epoch, seq, credits_micro, updated_at)
           VALUES (?, ?, 0, 0, ?)
           ON CONFLICT (org_id) DO NOTHING`, // the wallet may already have published a balance
        )
        .bind(organization.id, epoch, organization.createdAt),
      ...additionalStatements,
    ]);
    return success(null);
  } catch (error) {
    if (!isSlugTaken(error)) throw error;
    return slugTakenRefusal(organization.slug);
  }
}

/**
 * Applies a change and returns the new row. Fails with `conflict` if the slug is taken, with
 * `invalid_api_key` if the calling key isn't active, or with `not_found` if an operator names an
 * unknown organization.
 */
export async function updateOrganization(
  db: D1Database,
  id: string,
  change: OrganizationChange,
  by: OrganizationChanger,
): Promise<Result<StoredOrganization>> {
  const slug = change.slug ?? null;
  try {
    const row = await runUpdate(db, id, change, by);
    if (row !== null) return success(row);
    return by.keyId === null
      ? refuse({ kind: "not_found", message: "No such organization." })
      : refuse({ kind: "invalid_api_key" });
  } catch (error) {
    if (slug === null || !isSlugTaken(error)) throw error;
    return slugTakenRefusal(slug);
  }
}

/**
 * The actor of a change. `keyId` is the calling key, or null for an operator. The key must be
 * active.
 */
type OrganizationChanger = ChangeContext & { readonly keyId: string | null };

async function runUpdate(
  db: D1Database,
  id: string,
  change: OrganizationChange,
  by: OrganizationChanger,
): Promise<StoredOrganization | null> {
  const { name = null, slug = null, status = null, rpmLimit, priceList } = change;
  const hasRpmLimit = rpmLimit === undefined ? 0 : 1; // null removes the limit
  const { keyId: callerKeyId, actor, now } = by;
  const hasPriceList = priceList === undefined ? 0 : 1;
  const list = [hasPriceList, priceList ?? null];
  const values = [id, name, slug, status, hasRpmLimit, rpmLimit ?? null, callerKeyId, ...list];
  const event = { type: "organization.changed", actor, subject: id, orgId: id } as const;
  const [, rows] = await db.batch<StoredOrganization>([
    insertChangeEventStatement(
      db,
      { ...event, createdAt: now },
      {
        table: "organizations",
        where: canChangeSql(9),
        values,
        columns: {
          name: "coalesce(?10, name)",
          slug: "coalesce(?11, slug)",
          status: "coalesce(?12, status)",
          rpm_limit: "iif(?13, ?14, rpm_limit)",
          price_list: "iif(?16, ?17, price_list)",
        },
        // The name of a personal organization can contain a person's name.
        hidden: ["name", "slug"],
        hiddenWhere: `(is_personal = 1 OR EXISTS (SELECT 1 FROM personal_organizations WHERE org_id = organizations.id))`,
      },
    ),
    db
      .prepare(
        `UPDATE organizations SET name = coalesce(?2, name), slug = coalesce(?3, slug),
           status = coalesce(?4, status), rpm_limit = iif(?5, ?6, rpm_limit),
           price_list = iif(?8, ?9, price_list)
         WHERE ${canChangeSql(1)} RETURNING ${ORGANIZATION_COLUMNS}`,
      )
      .bind(...values),
  ]);
  return rows?.results[0] ?? null;
}

function canChangeSql(first: number): string {
  return `id = ?${first} AND (?${first + 6} IS NULL OR EXISTS
    (SELECT 1 FROM keys JOIN members ON members.id = keys.member_id
     WHERE keys.id = ?${first + 6} AND keys.revoked_at IS NULL AND members.removed_at IS NULL))`;
}

export function findOrganizationIdBySlug(db: D1Database, slug: string): Promise<string | null> {
  return db.prepare("SELECT id FROM organizations WHERE slug = ?").bind(slug).first<string>("id");
}

export function findOrganization(db: D1Database, id: string): Promise<StoredOrganization | null> {
  return db
    .prepare(`SELECT ${ORGANIZATION_COLUMNS} FROM organizations WHERE id = ?`)
    .bind(id)
    .first<StoredOrganization>();
}

function insertOrganizationStatement(db: D1Database, row: StoredOrganization): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO organizations
         (id, name, slug, region, is_personal, status, rpm_limit, created_at, used_at)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)`,
    )
    .bind(
      row.id,
      row.name,
      row.slug,
      row.region,
      row.isPersonal,
      row.status,
      row.rpmLimit,
      row.createdAt,
    );
}

function organizationCreatedStatement(
  db: D1Database,
  row: StoredOrganization,
  actor: Actor,
): D1PreparedStatement {
  const { id, name, slug, region } = row;
  // A personal organization's name isn't stored, because events outlive people.
  const data = row.isPersonal === 1 ? { region } : { name, slug, region };
  const event = { type: "organization.created", orgId: id, subject: id, data } as const;
  return insertEventOnce(db, event, { actor, now: row.createdAt });
}

function slugTakenRefusal(slug: string): Refusal {
  const message = `The slug '${slug}' is taken in this region.`;
  return refuse({ kind: "conflict", message, param: "slug" });
}

/**
 * Reports whether an error means a taken slug. Only SQLite's message names the violated constraint.
 */
function isSlugTaken(error: unknown): boolean {
  return (
    error instanceof Error && error.message.includes("UNIQUE constraint failed: organizations.slug")
  );
}

/** The last D1 migration that this release needs. */
export const NEWEST_MIGRATION = "0039_event_details.sql";

/** `behind`: D1 lacks a migration. `away`: D1 is unavailable. */
export type DatabaseState = "ready" | "behind" | "away";

export async function readDatabaseState(db: D1Database): Promise<DatabaseState> {
  try {
    const query = "SELECT name FROM d1_migrations WHERE name = ?";
    const found = await db.prepare(query).bind(NEWEST_MIGRATION).first();
    return found === null ? "behind" : "ready";
  } catch (error) {
    return String(error).includes("no such table") ? "behind" : "away";
  }
}
