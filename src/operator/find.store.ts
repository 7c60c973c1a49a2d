export const SEARCHABLE_OBJECT_KINDS = [
  "organization",
  "key",
  "member",
  "person",
  "invitation",
  "domain",
  "webhook",
  "credit",
  "purchase",
  "request",
  "event",
  "price",
  "merchant",
] as const;
type FoundKind = (typeof SEARCHABLE_OBJECT_KINDS)[number];

export type OrganizationOfMatch = {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
};
export type SearchMatch = {
  readonly object: FoundKind;
  readonly id: string;
  readonly name: string | null;
  readonly organization: OrganizationOfMatch | null;
};

const FOUND_MAX = 10;

type Lookup = {
  readonly object: FoundKind;
  readonly from: string;
  readonly id: string;
  readonly name: string;
  readonly where: string;
  readonly order: string;
};
const ID_MATCHES_SQL = "t.id = ?1";

/**
 * The queries that search for a text (?1). All use an index, except the search by organization
 * name.
 */
const LOOKUPS: readonly Lookup[] = [
  {
    ...lookup("organization", "(SELECT *, id AS org_id FROM organizations)", "t.name"),
    where: `${ID_MATCHES_SQL} OR t.slug = lower(?1) OR instr(lower(t.name), lower(?1)) > 0`,
    order: "t.slug = lower(?1) DESC, lower(t.name), t.id",
  },
  {
    ...lookup("key", "keys", "t.name"),
    where: `(${ID_MATCHES_SQL} OR t.prefix = ?1) AND t.is_console IS NULL`,
  },
  {
    ...lookup("member", "members", "t.email"),
    where: `(${ID_MATCHES_SQL} OR lower(t.email) = lower(?1)
      OR t.id IN (SELECT member_id FROM member_people WHERE person_id = ?1)) AND t.removed_at IS NULL`,
  },
  lookup("person", "(SELECT *, NULL AS org_id FROM people)", "t.name"),
  {
    ...lookup("invitation", "invitations", "t.email"),
    where: `${ID_MATCHES_SQL} OR lower(t.email) = lower(?1)`,
    order: "t.created_at DESC",
  },
  lookupByColumn("domain", "company_domains", "domain", "lower(?1)"),
  lookup("webhook", "webhooks", "t.url"),
  lookupByColumn("credit", "credits", "reference", "?1"),
  {
    ...lookup("purchase", "purchases", "t.state"),
    where: `${ID_MATCHES_SQL} OR t.session_id = ?1 OR t.invoice_id = ?1 OR t.payment_id = ?1`,
  },
  lookup("event", "events", "t.type"),
  lookup("price", "(SELECT *, NULL AS org_id FROM prices)", "t.item"),
  lookupByColumn("merchant", "(SELECT *, NULL AS org_id FROM merchants)", "name", "?1"),
];

function lookup(object: FoundKind, from: string, name: string): Lookup {
  return { object, from, id: "t.id", name, where: ID_MATCHES_SQL, order: "1" };
}

function lookupByColumn(object: FoundKind, from: string, column: string, text: string): Lookup {
  return { ...lookup(object, from, "NULL"), id: `t.${column}`, where: `t.${column} = ${text}` };
}

type Row = {
  readonly object: FoundKind;
  readonly id: string;
  readonly name: string | null;
  readonly orgId: string | null;
  readonly slug: string | null;
  readonly orgName: string | null;
};

/** Finds objects in D1 whose ID, name, address or prefix is this text. */
export async function searchDatabase(
  db: D1Database,
  text: string,
): Promise<{ readonly found: readonly SearchMatch[]; readonly hasMore: boolean }> {
  const answers = await db.batch<Row>(
    LOOKUPS.map(({ object, from, id, name, where, order }) =>
      db
        .prepare(
          `SELECT '${object}' AS object, ${id} AS id, ${name} AS name, o.id AS orgId, o.slug AS slug,
             o.name AS orgName FROM ${from} AS t LEFT JOIN organizations AS o ON o.id = t.org_id
           WHERE ${where} ORDER BY ${order} LIMIT ${FOUND_MAX + 1}`,
        )
        .bind(text),
    ),
  );
  return {
    found: answers.flatMap(({ results }) => results.slice(0, FOUND_MAX).map(foundFromRow)),
    hasMore: answers.some(({ results }) => results.length > FOUND_MAX),
  };
}

function foundFromRow({ object, id, name, orgId, slug, orgName }: Row): SearchMatch {
  const owner = orgId !== null && slug !== null && orgName !== null;
  return { object, id, name, organization: owner ? { id: orgId, slug, name: orgName } : null };
}

export type OrganizationPageQuery = { readonly after: string; readonly limit: number };

/** Returns a page of organizations with requests since a time (Unix ms). */
export async function pageActiveOrganizations(
  db: D1Database,
  { after, limit }: OrganizationPageQuery,
  usedSinceMs: number,
): Promise<readonly OrganizationOfMatch[]> {
  const { results } = await db
    .prepare(
      `SELECT id, slug, name FROM organizations WHERE id > ?1 AND used_at >= ?2 ORDER BY id LIMIT ?3`,
    )
    .bind(after, usedSinceMs, limit)
    .all<OrganizationOfMatch>();
  return results;
}
