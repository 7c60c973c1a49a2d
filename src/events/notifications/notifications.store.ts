import type { Role } from "../../shared/caller.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { EMAIL_EVENT_TYPES } from "./notification-text.ts";
import type { EmailEventType } from "./notification-text.ts";

export type EmailRecipient = {
  readonly memberId: string;
  readonly role: Role;
  readonly email: string;
  readonly organization: string;
  readonly types: readonly EmailEventType[];
};

const FINANCE_ROLES: readonly Role[] = ["owner", "admin", "billing"];
const MANAGERS: readonly Role[] = ["owner", "admin"];
/** Roles that can receive each type of event. Roles below admin get only their own keys' events. */
const ROLES_BY_TYPE: Readonly<Record<EmailEventType, readonly Role[]>> = {
  "balance.low": FINANCE_ROLES,
  "key.budget_reached": [...MANAGERS, "billing", "member"],
  "webhook.disabled": MANAGERS,
  "top_up.paused": FINANCE_ROLES,
  "top_up.disabled": FINANCE_ROLES,
};

export function eventTypesOfRole(role: Role): readonly EmailEventType[] {
  return EMAIL_EVENT_TYPES.filter((type) => ROLES_BY_TYPE[type].includes(role));
}

const RECIPIENTS_MAX = 50;

type StoredRecipient = Omit<EmailRecipient, "types"> & { readonly types: string | null };

/** Returns at most 50 recipients, owners first. */
export async function listRecipients(
  db: D1Database,
  orgId: string,
): Promise<readonly EmailRecipient[]> {
  const { results } = await db
    .prepare(
      `SELECT members.id AS memberId, role, people.email, organizations.name AS organization, types
       FROM members JOIN organizations ON organizations.id = members.org_id
       JOIN member_people ON member_people.member_id = members.id JOIN people ON people.id = person_id
       LEFT JOIN notification_preferences ON notification_preferences.member_id = members.id
       WHERE members.org_id = ? AND removed_at IS NULL AND is_email_proven = 1 AND people.email IS NOT NULL
       ORDER BY role <> 'owner', members.created_at, members.id LIMIT ${RECIPIENTS_MAX}`,
    )
    .bind(orgId)
    .all<StoredRecipient>();
  return results.map(({ memberId, role, email, organization, types }) => {
    return { memberId, role, email, organization, types: chosenTypes(types, role) };
  });
}

export async function readEmailPreferences(
  db: D1Database,
  { memberId, role }: { readonly memberId: string; readonly role: Role },
): Promise<readonly EmailEventType[]> {
  const types = await db
    .prepare("SELECT types FROM notification_preferences WHERE member_id = ?")
    .bind(memberId)
    .first<string>("types");
  return chosenTypes(types, role);
}

export async function storeEmailPreferences(
  db: D1Database,
  memberId: string,
  { types, nowMs }: { readonly types: readonly EmailEventType[]; readonly nowMs: number },
): Promise<void> {
  await db
    .prepare(
      `INSERT INTO notification_preferences (member_id, types, changed_at) VALUES (?1, ?2, ?3)
       ON CONFLICT (member_id) DO UPDATE SET types = ?2, changed_at = ?3`,
    )
    .bind(memberId, JSON.stringify(types), nowMs)
    .run();
}

export function findMemberIdOfKey(db: D1Database, keyId: string): Promise<string | null> {
  return db
    .prepare("SELECT member_id FROM keys WHERE id = ?")
    .bind(keyId)
    .first<string>("member_id");
}

function chosenTypes(stored: string | null, role: Role): readonly EmailEventType[] {
  const allowed = eventTypesOfRole(role);
  if (stored === null) return allowed;
  const chosen = parseStoredJson<string[]>(stored);
  return allowed.filter((type) => chosen.includes(type));
}
