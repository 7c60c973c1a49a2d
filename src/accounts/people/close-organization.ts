import * as z from "zod/mini";
import { parseFields } from "../../shared/http/parse-body.ts";
import { ensureConsoleKey } from "../keys/console-key.store.ts";
import type { KeyServices } from "../keys/revocation.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { callObject } from "../../shared/reach-object.ts";
import { syncWithDatabase } from "../../shared/sync-with-database.ts";
import {
  closeOrganization,
  eraseOrganization,
  findOrganizationClosing,
  findRestoringOwner,
  isOrganizationClosed,
  recordOrganizationRemoval,
  restoreOrganization,
} from "./closing.store.ts";
import { exportOrganization } from "./erasure.store.ts";
import { createMemberActor } from "./people-call.ts";
import type { MemberCall, PeopleCall, PeopleServices } from "./people-call.ts";
import { revokeKeysEverywhere, endSessionsOfMember } from "./removal.ts";
import { canCreateOrganization, tooManyOrganizationsRefusal } from "./sign-up.store.ts";

const CONCURRENT_MAX = 6;

export const closeOrganizationSchema = z.object({ give_up_balance: z.optional(z.boolean()) });

export async function deleteOrganization(call: MemberCall) {
  const fields = parseFields(closeOrganizationSchema, [], call.body ?? {});
  if (!fields.ok) return fields;
  const { as } = call;
  const closed = await closeOrganizationEverywhere(call, as.orgId, {
    actor: call.actor,
    memberId: as.memberId,
    givesUp: fields.value.give_up_balance,
  });
  return closed.ok ? success({ id: as.orgId, deleted: true }) : closed;
}

type ClosingServices = KeyServices & Pick<PeopleServices, "takeEvents" | "deliveries" | "payments">;

/** Fails with `has_balance` if the organization has credits that the caller doesn't give up. */
export async function requireBalanceGivenUp(
  { wallet }: Pick<ClosingServices, "wallet">,
  orgId: string,
  givesUpBalance = false,
): Promise<Result<null>> {
  if (givesUpBalance) return success(null);
  const balance = await wallet(orgId).balance();
  if (!balance.ok) return balance;
  if (balance.value.creditsMicro <= 0) return success(null);
  const message =
    "This organization still has credits. Request a refund, or confirm that you give up the credits.";
  const param = "give_up_balance";
  return refuse({ kind: "conflict", message, param, code: "has_balance" });
}

/**
 * Closes an organization. Rejects new requests, but finishes and charges running ones. An operator
 * can restore the organization for 7 days, unless it was closed because its last member deleted
 * their account (`isAlone`). After a 503, a retry completes the closing.
 */
export async function closeOrganizationEverywhere(
  services: ClosingServices,
  orgId: string,
  by: {
    readonly actor: Actor;
    readonly memberId: string | null;
    readonly givesUp?: boolean | undefined;
    readonly isAlone?: boolean;
  },
): Promise<Result<null>> {
  const { db, now } = services;
  const balanceRefusal = await requireBalanceGivenUp(services, orgId, by.givesUp);
  if (!balanceRefusal.ok) return balanceRefusal;
  const formerMembers = await closeOrganization(db, orgId, { ...by, now });
  if (formerMembers === null) {
    const message = "Another person has joined this organization. Please try again.";
    return by.isAlone === true
      ? refuse({ kind: "conflict", message, param: null })
      : refuse({ kind: "role_required", roles: ["owner"] });
  }
  const configured = await notifyWalletOfClosing(services, orgId);
  const sessionEndings = await mapConcurrently(
    CONCURRENT_MAX,
    formerMembers,
    ({ personId, memberId }) => endSessionsOfMember(services, personId, { id: memberId, orgId }),
  );
  services.takeEvents(orgId);
  const removed =
    by.isAlone === true
      ? await removeOrganization({ ...services, actor: by.actor }, orgId)
      : success(null);
  return [configured, removed, ...sessionEndings].find((one) => !one.ok) ?? success(null);
}

/** Notifies the wallet of a closing or restoration. Cancels a closed organization's purchases. */
export async function notifyWalletOfClosing(
  { db, wallet, payments }: Pick<ClosingServices, "db" | "wallet" | "payments">,
  orgId: string,
): Promise<Result<unknown>> {
  const found = await findOrganizationClosing(db, orgId);
  if (found === null) return success(null);
  const synced = await syncWithDatabase(found, {
    send: ({ status, closedAt }) =>
      wallet(orgId).configure({ suspended: status === "suspended", closed: closedAt !== null }),
    reread: () => findOrganizationClosing(db, orgId),
    isSame: (one, other) => one.status === other.status && one.closedAt === other.closedAt,
  });
  if (!synced.ok || synced.value.closedAt === null) return synced;
  // The wallet is closed first, so that it starts no further automatic purchase.
  const cancelled = await callObject(() => payments(orgId).cancelAll());
  return cancelled.ok || cancelled.failure.kind === "payments_off" ? success(null) : cancelled;
}

/**
 * Reopens an organization closed in the last 7 days. After a 503, a retry completes the
 * restoration.
 */
export async function reopenOrganization(
  services: KeyServices & Pick<PeopleServices, "payments">,
  orgId: string,
  actor: Actor,
): Promise<Result<null>> {
  const { db, now } = services;
  const { isRestored, keys } = await restoreOrganization(db, orgId, { actor, now });
  // Revocations apply before the wallet accepts requests again.
  const ended = await revokeKeysEverywhere(services, keys);
  if (!ended.ok) return ended;
  const walletNotice = await notifyWalletOfClosing(services, orgId);
  if (!walletNotice.ok) return walletNotice;
  if (isRestored || !(await isOrganizationClosed(db, orgId))) return success(null);
  const message = "This organization was removed permanently, so it can't be restored.";
  return refuse({ kind: "conflict", message, param: null, code: "organization_closed" });
}

/**
 * Handles POST /organizations/{id}/restore. An owner can reopen an organization that an owner
 * closed.
 */
export async function postMyOrganizationRestore(call: PeopleCall) {
  const { db, person, sessions } = call;
  const find = () => findRestoringOwner(db, call.params["id"] ?? "", person.id);
  const owner = await find();
  if (owner === null) return notRestorableRefusal();
  if (owner.isCompanys === 1) {
    const message =
      "This organization requires members to use its company login. If the organization was closed, ask the operator to restore it.";
    return refuse({ kind: "conflict", message, param: null, code: "company_log_in_required" });
  }
  if (
    (await isOrganizationClosed(db, owner.orgId)) &&
    !(await canCreateOrganization(db, person.id))
  ) {
    return tooManyOrganizationsRefusal();
  }
  const restored = await reopenOrganization(call, owner.orgId, createMemberActor(owner.memberId));
  if (!restored.ok) return (await find()) === null ? notRestorableRefusal() : restored;
  call.takeEvents(owner.orgId);
  await ensureConsoleKey(call, owner.memberId);
  const sessionChange = await sessions.act(owner);
  return sessionChange.ok ? success({ id: owner.orgId, restored: true }) : sessionChange;
}

function notRestorableRefusal(): Refusal {
  const message = "You can't restore this organization. Ask the operator.";
  return refuse({ kind: "not_found", message });
}

/** Maximum calls in one removal. Each call deletes 200 end users. */
const ERASING_CALLS_MAX = 50;

/**
 * Permanently removes a closed organization: revokes its keys, and erases names, addresses and end
 * users. Keeps the ledger. If this fails, the next sweep completes it.
 */
export async function removeOrganization(
  services: Omit<ClosingServices, "takeEvents">,
  orgId: string,
): Promise<Result<null>> {
  const { db, wallet, deliveries, now: nowMs } = services;
  const keys = await eraseOrganization(db, orgId, nowMs);
  if (keys === null) return success(null);
  const ended = await revokeKeysEverywhere(services, keys);
  if (!ended.ok) return ended;
  const webhookRemoval = await callObject(() => deliveries(orgId).refresh(orgId));
  if (!webhookRemoval.ok) return webhookRemoval;
  for (let call = 0; call < ERASING_CALLS_MAX; call++) {
    const erasure = await callObject(() => wallet(orgId).eraseEndUsers());
    if (!erasure.ok) return erasure;
    if (erasure.value.more) continue;
    await recordOrganizationRemoval(db, orgId, nowMs);
    return success(null);
  }
  return refuse({ kind: "overloaded" });
}

export async function getOrganizationExport(call: MemberCall) {
  return success(await exportOrganization(call.db, call.as.orgId));
}
