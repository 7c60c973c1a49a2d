import { now } from "../../shared/clock.ts";
import type { EventDispatchStore, EventSweepCursor } from "./stripe-events.ts";
import type { StubGetters } from "../../shared/contracts/objects.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timers.ts";
import type { PurchaseRecord } from "../../shared/contracts/payments.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";

export async function addCustomer(
  db: D1Database,
  customerId: string,
  orgId: string,
): Promise<void> {
  await db
    .prepare(
      `INSERT INTO stripe_customers (customer_id, org_id, created_at) VALUES (?, ?, ?)
      ON CONFLICT (customer_id) DO NOTHING`,
    )
    .bind(customerId, orgId, now({}))
    .run();
}

export async function readOrganizationForPurchase(
  db: D1Database,
  orgId: string,
): Promise<{ readonly name: string; readonly createdAt: number } | null> {
  return db
    .prepare("SELECT name, created_at AS createdAt FROM organizations WHERE id = ?")
    .bind(orgId)
    .first<{ name: string; createdAt: number }>();
}

/** Records a card's use. Returns the number of organizations with this card. */
export async function addCard(db: D1Database, fingerprint: string, orgId: string): Promise<number> {
  await db
    .prepare(
      `INSERT INTO card_fingerprints (fingerprint, org_id, created_at) VALUES (?, ?, ?)
      ON CONFLICT (fingerprint, org_id) DO NOTHING`,
    )
    .bind(fingerprint, orgId, now({}))
    .run();
  const seen = await db
    .prepare("SELECT count(*) AS n FROM card_fingerprints WHERE fingerprint = ?")
    .bind(fingerprint)
    .first<number>("n");
  return seen ?? 0;
}

function parseCursor(stored: string): EventSweepCursor {
  const [sinceS = 0, beforeS, startedS] = stored.split(":").map(Number);
  const isCut = beforeS !== undefined && startedS !== undefined;
  return { sinceS, rest: isCut ? { beforeS, startedS } : null };
}

export function createEventDispatchStore(db: D1Database): EventDispatchStore {
  return {
    organizationOf: (customerId) =>
      db
        .prepare("SELECT org_id FROM stripe_customers WHERE customer_id = ?")
        .bind(customerId)
        .first<string>("org_id"),
    isOrganization: async (orgId) => (await readOrganizationForPurchase(db, orgId)) !== null,
    cursor: async () => {
      const after = await readCursor(db, "stripe_events");
      return after === null ? null : parseCursor(after);
    },
    moveCursor: ({ sinceS, rest }) => {
      const after = [sinceS, ...(rest === null ? [] : [rest.beforeS, rest.startedS])];
      return writeCursor(db, "stripe_events", after.join(":"));
    },
  };
}

const PAYERS_MAX = 80;
const CONCURRENCY_MAX = 6;
const POKE_TIMEOUT_MS = 5000;

/** Wakes payment objects, so that overdue work continues. */
export async function wakePaymentsObjects(
  db: D1Database,
  objects: StubGetters<"payments", "poke">,
): Promise<void> {
  const after = await readCursor(db, "payers");
  const { results } = await db
    .prepare(`${payersSql(">")} UNION ALL ${payersSql("<=")} LIMIT ?2`)
    .bind(after ?? "", PAYERS_MAX)
    .all<{ org_id: string }>();
  await mapConcurrently(CONCURRENCY_MAX, results, ({ org_id }) =>
    wakePaymentsObject(org_id, objects),
  );
  const last = results.at(-1)?.org_id;
  if (last !== undefined) await writeCursor(db, "payers", last);
}

function readCursor(db: D1Database, name: string): Promise<string | null> {
  return db.prepare("SELECT after FROM cursors WHERE name = ?").bind(name).first<string>("after");
}

async function writeCursor(db: D1Database, name: string, after: string): Promise<void> {
  await db
    .prepare("INSERT OR REPLACE INTO cursors (name, after) VALUES (?, ?)")
    .bind(name, after)
    .run();
}

function payersSql(side: ">" | "<="): string {
  return `SELECT org_id FROM (SELECT DISTINCT org_id FROM stripe_customers WHERE org_id ${side} ?1
    ORDER BY org_id LIMIT ?2)`;
}

async function wakePaymentsObject(
  orgId: string,
  objects: StubGetters<"payments", "poke">,
): Promise<void> {
  try {
    await withTimeout(objects.payments(orgId).poke(), POKE_TIMEOUT_MS);
  } catch (error) {
    logWarning("payments_not_looked_at", { org_id: orgId, reason: errorMessageOf(error) });
  }
}

/** Stores an organization's purchases in D1, unless D1 has newer records. */
export async function putPurchases(
  db: D1Database,
  orgId: string,
  purchases: readonly PurchaseRecord[],
): Promise<void> {
  const put = db.prepare(
    `INSERT INTO purchases
       (id, org_id, state, returned_micro, session_id, invoice_id, payment_id, record, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
       state = excluded.state, returned_micro = excluded.returned_micro,
       session_id = excluded.session_id, invoice_id = excluded.invoice_id,
       payment_id = excluded.payment_id, record = excluded.record, updated_at = excluded.updated_at
     WHERE excluded.updated_at >= purchases.updated_at`,
  );
  await db.batch(
    purchases.map((one) => {
      const { id, state, returnedMicro, sessionId, invoiceId, paymentId, updatedAt } = one;
      // The URL isn't stored in D1, because anyone with it can pay.
      const record = JSON.stringify({ ...one, url: null });
      const named = [sessionId, invoiceId, paymentId];
      return put.bind(id, orgId, state, returnedMicro, ...named, record, updatedAt);
    }),
  );
}

export type PurchaseTotalsInD1 = {
  readonly purchases: number;
  readonly updatedAt: number;
  readonly returnedMicro: number;
};

export async function readPublishedPurchaseTotals(
  db: D1Database,
  orgId: string,
): Promise<PurchaseTotalsInD1> {
  const totals = await db
    .prepare(
      `SELECT count(*) AS purchases, coalesce(sum(updated_at), 0) AS updatedAt,
         coalesce(sum(returned_micro), 0) AS returnedMicro FROM purchases WHERE org_id = ?`,
    )
    .bind(orgId)
    .first<PurchaseTotalsInD1>();
  return totals ?? { purchases: 0, updatedAt: 0, returnedMicro: 0 };
}

type PublishedQuery = {
  readonly orgId: string | null;
  /** A purchase state, or `refunded`. */
  readonly state: string | null;
  /** IDs of purchases to select: from `fromId` to below `beforeId`. */
  readonly beforeId: string;
  readonly fromId: string;
  readonly limit: number;
};
type PublishedPurchase = {
  readonly purchase: PurchaseRecord;
  readonly organization: {
    readonly id: string;
    readonly slug: string | null;
    readonly name: string | null;
  };
};

/** Returns up to `limit` + 1 purchases, newest first. */
export async function listPublishedPurchases(
  db: D1Database,
  { orgId, state, beforeId, fromId, limit }: PublishedQuery,
): Promise<readonly PublishedPurchase[]> {
  const conditions = [
    "p.id < ?1 AND p.id >= ?2 AND ?3 = ?3 AND ?4 = ?4",
    ...(orgId === null ? [] : ["p.org_id = ?3"]),
    ...(state === null
      ? []
      : [state === REFUNDED_FILTER ? "p.returned_micro > 0" : "p.state = ?4"]),
  ];
  const { results } = await db
    .prepare(
      `SELECT p.record AS record, p.org_id AS id, o.slug AS slug, o.name AS name
       FROM purchases AS p LEFT JOIN organizations AS o ON o.id = p.org_id
       WHERE ${conditions.join(" AND ")} ORDER BY p.id DESC LIMIT ?5`,
    )
    .bind(beforeId, fromId, orgId ?? "", state ?? "", limit + 1)
    .all<{ record: string; id: string; slug: string | null; name: string | null }>();
  return results.map(({ record, ...organization }) => {
    return { purchase: parseStoredJson<PurchaseRecord>(record), organization };
  });
}

/** State filter for purchases with a refund or dispute. */
export const REFUNDED_FILTER = "refunded";
