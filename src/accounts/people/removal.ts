import { revokeKeyEverywhere } from "../keys/revocation.ts";
import type { KeyServices } from "../keys/revocation.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { consoleAccountName } from "../../shared/console-account.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { callObject } from "../../shared/reach-object.ts";
import { removeMember } from "../organizations/members.store.ts";
import type { RevokedKey, MemberIds, RemovedMember } from "../organizations/members.store.ts";

const CONCURRENT_MAX = 6;

/**
 * Returns the name of a person's ConsoleSession object for one realm. Realms are separate, because
 * a company's issuer can open any number of sessions.
 */
export function personConsoleAccountName(personId: string, realm = ""): string {
  return consoleAccountName(realm === "" ? `person/${personId}` : `person/${personId}/${realm}`);
}

export async function endSessionsOfMember(
  { consoles }: Pick<KeyServices, "consoles">,
  personId: string,
  member: MemberIds,
): Promise<Result<null>> {
  const accounts = ["", member.orgId].map((realm) => personConsoleAccountName(personId, realm));
  const closed = await mapConcurrently(CONCURRENT_MAX, accounts, (account) =>
    callObject(() => consoles(account).closeOf(member.id)),
  );
  return closed.find((one) => !one.ok) ?? success(null);
}

/**
 * Removes a member from D1, key objects and the wallet, then ends their sessions. Running requests
 * finish and are charged. A null `by` means an operator. A retry completes the removal.
 */
export async function removeMemberEverywhere(
  services: KeyServices,
  member: MemberIds,
  by: string | null,
): Promise<Result<Pick<RemovedMember, "email">>> {
  const { db, actor, now } = services;
  const removed = await removeMember(db, member, { actor, now, memberId: by });
  if (!removed.ok) return removed;
  const { keys, personId, email } = removed.value;
  const ended = await revokeKeysEverywhere(services, keys);
  if (!ended.ok) return ended;
  const walletErasure = await callObject(() =>
    services.wallet(member.orgId).forgetMember(member.id),
  );
  if (!walletErasure.ok) return walletErasure;
  const sessionsEnded =
    personId === null ? ended : await endSessionsOfMember(services, personId, member);
  return sessionsEnded.ok ? success({ email }) : sessionsEnded;
}

export async function revokeKeysEverywhere(
  services: KeyServices,
  keys: readonly RevokedKey[],
): Promise<Result<null>> {
  const ended = await mapConcurrently(CONCURRENT_MAX, keys, (key) =>
    revokeKeyEverywhere(services, key),
  );
  return ended.find((one) => !one.ok) ?? success(null);
}
