import { revokeKeyEverywhere } from "../keys/revocation.ts";
import type { KeyServices } from "../keys/revocation.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { consoleAccount } from "../../shared/console-account.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { reachObject } from "../../shared/reach-object.ts";
import { removeMember } from "../organizations/members.store.ts";
import type { EndedKey, MemberName, RemovedMember } from "../organizations/members.store.ts";

const AT_ONCE = 6;

/**
 * The object of a person's sessions in one realm. A company's own provider can open sessions at will, so they never
 * evict or slow the person's sessions of other organizations. The empty realm belongs to the operator's providers.
 */
export function personAccount(personId: string, realm = ""): string {
  return consoleAccount(realm === "" ? `person/${personId}` : `person/${personId}/${realm}`);
}

/** Ends the sessions that act as a member, of the operator's providers and of the company's own. */
export async function endSessionsOfMember(
  { consoles }: Pick<KeyServices, "consoles">,
  personId: string,
  member: MemberName,
): Promise<Result<null>> {
  const accounts = ["", member.orgId].map((realm) => personAccount(personId, realm));
  const closed = await mapConcurrently(AT_ONCE, accounts, async (account) => {
    const told = await reachObject(() => consoles(account).closeOf(member.id));
    return told.unanswered ? refuse(told.failure) : told.result;
  });
  return closed.find((one) => !one.ok) ?? success(null);
}

/**
 * Removes a member: the database, then the object and wallet of each active key, then sessions. Nothing of
 * the member is admitted from the response on; running requests finish and are charged. `by` is null for an
 * operator. A 503 leaves objects to update; a retry completes it.
 */
export async function removeMemberEverywhere(
  services: KeyServices,
  member: MemberName,
  by: string | null,
): Promise<Result<Pick<RemovedMember, "email">>> {
  const { db, actor, now: nowMs } = services;
  const removed = await removeMember(db, member, { actor, nowMs, memberId: by });
  if (!removed.ok) return removed;
  const { keys, personId, email } = removed.value;
  const ended = await endKeys(services, keys);
  if (!ended.ok) return ended;
  const left = personId === null ? ended : await endSessionsOfMember(services, personId, member);
  return left.ok ? success({ email }) : left;
}

/** Revokes all keys even if one fails, then returns the first failure. */
export async function endKeys(
  services: KeyServices,
  keys: readonly EndedKey[],
): Promise<Result<null>> {
  const ended = await mapConcurrently(AT_ONCE, keys, (key) => revokeKeyEverywhere(services, key));
  return ended.find((one) => !one.ok) ?? success(null);
}
