import { env } from "cloudflare:workers";
import { expect } from "vitest";

/**
 * Returns all stored data of an organization in the database and its wallet, except times of use. A
 * rejected write must not change it.
 */
export async function storedData(orgId: string): Promise<string> {
  const wallet = env.WALLET.getByName(orgId);
  const of = (sql: string): D1PreparedStatement => env.DB.prepare(sql).bind(orgId);
  const [book, figures, settings, endUsers] = await Promise.all([
    env.DB.batch([
      of("SELECT id, name, slug, status, rpm_limit FROM organizations WHERE id = ?"),
      of("SELECT id, email, role, removed_at FROM members WHERE org_id = ? ORDER BY id"),
      of(
        "SELECT id, member_id, name, scope, rpm_limit, revoked_at FROM keys WHERE org_id = ? ORDER BY id",
      ),
      env.DB.prepare("SELECT count(*) AS organizations FROM organizations"),
    ]),
    validFigures(orgId),
    wallet.readSettings(),
    wallet.listEndUsers(100, 0),
  ]);
  return JSON.stringify([book.map(({ results }) => results), figures, settings, endUsers]);
}

/** Checks a wallet without open holds, whose ledger adds up to its balance. Returns its figures. */
export async function validFigures(
  orgId: string,
): Promise<{ readonly balance: number; readonly seq: number }> {
  const answer = await env.WALLET.getByName(orgId).reconcile();
  if (!answer.ok) throw new Error(`no figures: ${answer.failure.kind}`);
  const { creditsMicro, heldMicro, openHolds, seq, differences } = answer.value;
  expect({ differences, heldMicro, openHolds }).toEqual({
    differences: [],
    heldMicro: 0,
    openHolds: 0,
  });
  expect(creditsMicro).toBeGreaterThanOrEqual(0);
  return { balance: creditsMicro, seq };
}
