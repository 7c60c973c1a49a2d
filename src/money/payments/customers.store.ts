import { now } from "../../shared/clock.ts";
import type { EventStore, SweepCursor } from "./stripe-events.ts";

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

export async function readBuyingOrganization(
  db: D1Database,
  orgId: string,
): Promise<{ readonly name: string; readonly createdAt: number } | null> {
  return db
    .prepare("SELECT name, created_at AS createdAt FROM organizations WHERE id = ?")
    .bind(orgId)
    .first<{ name: string; createdAt: number }>();
}

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

const CURSOR = "stripe_events";

function parseCursor(stored: string): SweepCursor {
  const [sinceS = 0, beforeS, startedS] = stored.split(":").map(Number);
  const isCut = beforeS !== undefined && startedS !== undefined;
  return { sinceS, rest: isCut ? { beforeS, startedS } : null };
}

export function createStripeEventStore(db: D1Database): EventStore {
  return {
    organizationOf: (customerId) =>
      db
        .prepare("SELECT org_id FROM stripe_customers WHERE customer_id = ?")
        .bind(customerId)
        .first<string>("org_id"),
    isOrganization: async (orgId) => (await readBuyingOrganization(db, orgId)) !== null,
    cursor: async () => {
      const after = await db
        .prepare("SELECT after FROM cursors WHERE name = ?")
        .bind(CURSOR)
        .first<string>("after");
      return after === null ? null : parseCursor(after);
    },
    moveCursor: async ({ sinceS, rest }) => {
      await db
        .prepare(
          `INSERT INTO cursors (name, after) VALUES (?1, ?2)
          ON CONFLICT (name) DO UPDATE SET after = excluded.after`,
        )
        .bind(CURSOR, [sinceS, ...(rest === null ? [] : [rest.beforeS, rest.startedS])].join(":"))
        .run();
    },
  };
}
