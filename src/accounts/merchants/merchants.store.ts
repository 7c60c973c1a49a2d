import { sha256Hex } from "../../shared/hash.ts";
import { randomBase62 } from "../../shared/id.ts";

export const MERCHANT_SECRET_PREFIX = "svc_mer_";
const SECRET_CHARACTERS = 43;
const SECRET_PATTERN = new RegExp(`^${MERCHANT_SECRET_PREFIX}[0-9A-Za-z]{${SECRET_CHARACTERS}}$`);

/** A service that can capture holds. Times are Unix ms. */
export type Merchant = {
  readonly name: string;
  readonly createdAt: number;
  readonly rotatedAt: number | null;
  readonly createdBy: string;
};

const COLUMNS = "name, created_at AS createdAt, rotated_at AS rotatedAt, created_by AS createdBy";

export function mintMerchantSecret(): string {
  return MERCHANT_SECRET_PREFIX + randomBase62(SECRET_CHARACTERS);
}

export async function insertMerchant(
  db: D1Database,
  newMerchant: {
    readonly name: string;
    readonly secret: string;
    readonly by: string;
    readonly at: number;
  },
): Promise<Merchant | null> {
  return db
    .prepare(
      `INSERT INTO merchants (name, secret_hash, created_at, created_by) VALUES (?, ?, ?, ?)
       ON CONFLICT (name) DO NOTHING RETURNING ${COLUMNS}`,
    )
    .bind(newMerchant.name, await sha256Hex(newMerchant.secret), newMerchant.at, newMerchant.by)
    .first<Merchant>();
}

export async function listMerchants(db: D1Database): Promise<readonly Merchant[]> {
  const { results } = await db
    .prepare(`SELECT ${COLUMNS} FROM merchants ORDER BY name`)
    .all<Merchant>();
  return results;
}

export async function rotateMerchantSecret(
  db: D1Database,
  rotated: { readonly name: string; readonly secret: string; readonly at: number },
): Promise<Merchant | null> {
  return db
    .prepare(
      `UPDATE merchants SET secret_hash = ?2, rotated_at = ?3 WHERE name = ?1 RETURNING ${COLUMNS}`,
    )
    .bind(rotated.name, await sha256Hex(rotated.secret), rotated.at)
    .first<Merchant>();
}

export async function deleteMerchant(db: D1Database, name: string): Promise<boolean> {
  const { meta } = await db.prepare("DELETE FROM merchants WHERE name = ?").bind(name).run();
  return meta.changes > 0;
}

export async function isMerchant(db: D1Database, name: string): Promise<boolean> {
  const row = await db.prepare("SELECT 1 FROM merchants WHERE name = ?").bind(name).first();
  return row !== null;
}

export async function findMerchantName(db: D1Database, secret: string): Promise<string | null> {
  if (!SECRET_PATTERN.test(secret)) return null;
  return db
    .prepare("SELECT name FROM merchants WHERE secret_hash = ?")
    .bind(await sha256Hex(secret))
    .first<string>("name");
}
