import * as z from "zod/mini";
import type { Answer } from "../../shared/http/endpoint.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import type { KeyServices } from "../keys/revocation.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { reachObject } from "../../shared/reach-object.ts";
import { closeOrganization, exportOrganization } from "./erasure.store.ts";
import { memberActor } from "./people-call.ts";
import type { MemberCall, PeopleServices } from "./people-call.ts";
import { endKeys, endSessionsOfMember } from "./removal.ts";

const AT_ONCE = 6;

export const closeOrganizationBody = z.object({ give_up_balance: z.optional(z.boolean()) });

/** Handles DELETE /organization: an owner closes it permanently. */
export async function deleteOrganization(call: MemberCall): Promise<Answer> {
  const fields = parseFields(closeOrganizationBody, [], call.body ?? {});
  if (!fields.ok) return fields;
  const { as } = call;
  const by = { actor: memberActor(as.memberId), memberId: as.memberId };
  const closed = await endOrganization(call, as.orgId, {
    ...by,
    givesUp: fields.value.give_up_balance,
  });
  return closed.ok ? success({ id: as.orgId, deleted: true }) : closed;
}

type ClosingServices = KeyServices & Pick<PeopleServices, "takeEvents" | "deliveries">;

/** Fails with `has_balance` if the caller doesn't give up remaining credits. */
export async function checkBalanceGivenUp(
  { wallet }: Pick<ClosingServices, "wallet">,
  orgId: string,
  givesUp = false,
): Promise<Result<null>> {
  if (givesUp) return success(null);
  const balance = await wallet(orgId).balance();
  if (!balance.ok) return balance;
  if (balance.value.creditsMicro <= 0) return success(null);
  const message =
    "This organization has credits. Request a refund, or confirm that you give them up.";
  const param = "give_up_balance";
  return refuse({ kind: "conflict", message, param, code: "has_balance" });
}

/**
 * Closes an organization. Nothing is admitted or charged afterwards. Erases names and addresses;
 * the ledger stays. After a 503, a retry completes the work.
 */
export async function endOrganization(
  services: ClosingServices,
  orgId: string,
  by: {
    readonly actor: Actor;
    readonly memberId: string | null;
    readonly givesUp?: boolean | undefined;
    readonly isAlone?: boolean;
  },
): Promise<Result<null>> {
  const { db, wallet, now: nowMs, deliveries } = services;
  const left = await checkBalanceGivenUp(services, orgId, by.givesUp);
  if (!left.ok) return left;
  const closed = await closeOrganization(db, orgId, { ...by, nowMs });
  if (closed === null) {
    const message = "Another person has joined this organization. Please try again.";
    return by.isAlone === true
      ? refuse({ kind: "conflict", message, param: null })
      : refuse({ kind: "role_required", roles: ["owner"] });
  }
  const ended = await endKeys({ ...services, actor: by.actor }, closed.keys);
  const configured = await reachObject(() =>
    wallet(orgId).configure({ suspended: true, rpmLimit: null }),
  );
  const out = await mapConcurrently(AT_ONCE, closed.persons, ({ personId, memberId }) =>
    endSessionsOfMember(services, personId, { id: memberId, orgId }),
  );
  const undelivered = await reachObject(() => deliveries(orgId).refresh(orgId));
  services.takeEvents(orgId);
  if (configured.unanswered) return refuse(configured.failure);
  if (undelivered.unanswered) return refuse(undelivered.failure);
  return (
    [ended, configured.result, undelivered.result, ...out].find((one) => !one.ok) ?? success(null)
  );
}

export async function getOrganizationExport(call: MemberCall): Promise<Answer> {
  return success(await exportOrganization(call.db, call.as.orgId));
}
