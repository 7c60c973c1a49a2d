import { mintId } from "../../shared/id.ts";
import { mintKey } from "./api-key.ts";
import type { KeyServices } from "./revocation.ts";

const RPM_LIMIT = 60;

/** A member's hidden key for the console. */
export type ConsoleKey = {
  readonly keyId: string;
  readonly keyHash: string;
  readonly prefix: string;
};

/** Creates a key for the console, and discards its secret so that only the console can use it. */
export async function mintConsoleKey({
  region: home,
  keySecrets: secrets,
  now,
}: Pick<KeyServices, "region" | "keySecrets" | "now">): Promise<ConsoleKey> {
  const { hash, prefix } = await mintKey({ home, scope: "regional", secrets });
  return { keyId: mintId("key_", now), keyHash: hash, prefix };
}

type ConsoleKeyMember = string | { readonly invitation: string; readonly acceptedBy: string };

/**
 * Returns a statement that inserts a console key for a member without one. Insert the member first.
 */
export function createInsertConsoleKeyStatement(
  db: D1Database,
  key: ConsoleKey,
  keyMember: ConsoleKeyMember,
  nowMs: number,
): D1PreparedStatement {
  const [existingMemberId, accepted] =
    typeof keyMember === "string" ? [keyMember, null] : [null, keyMember];
  return db
    .prepare(
      `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at, is_console)
       SELECT ?1, ?2, org_id, id, 'Console', ?3, 'regional', ${RPM_LIMIT}, ?5, 1 FROM members
       WHERE id = coalesce(?4, (SELECT coalesce(member_id, ?7) FROM invitations WHERE id = ?6 AND accepted_by = ?7))
         AND removed_at IS NULL AND NOT EXISTS (SELECT 1 FROM keys AS other
           WHERE other.member_id = members.id AND other.is_console = 1 AND other.revoked_at IS NULL)`,
    )
    .bind(
      key.keyId,
      key.keyHash,
      key.prefix,
      existingMemberId,
      nowMs,
      accepted?.invitation ?? null,
      accepted?.acceptedBy ?? null,
    );
}

export async function ensureConsoleKey(
  { db, ...mint }: Parameters<typeof mintConsoleKey>[0] & { readonly db: D1Database },
  memberId: string,
): Promise<void> {
  await createInsertConsoleKeyStatement(db, await mintConsoleKey(mint), memberId, mint.now).run();
}

type LiveConsoleKey = Pick<ConsoleKey, "keyId" | "keyHash"> & {
  readonly orgId: string;
  readonly memberId: string;
};

export async function listConsoleKeys(
  db: D1Database,
  personId: string,
): Promise<readonly LiveConsoleKey[]> {
  const { results } = await db
    .prepare(
      `SELECT keys.id AS keyId, keys.hash AS keyHash, keys.org_id AS orgId, keys.member_id AS memberId FROM keys
       JOIN member_people ON member_people.member_id = keys.member_id
       WHERE member_people.person_id = ? AND keys.is_console = 1 AND keys.revoked_at IS NULL`,
    )
    .bind(personId)
    .all<LiveConsoleKey>();
  return results;
}
