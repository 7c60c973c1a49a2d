import * as z from "zod/mini";
import { parseBody } from "../shared/http/parse-body.ts";
import { invalid, success } from "../shared/failure.ts";
import { generationSchema } from "../shared/generation.ts";
import { micros } from "../shared/money.ts";
import { callObject } from "../shared/reach-object.ts";
import { findOrganizationOfCall } from "./organizations.ts";
import type { OperatorCall } from "./operator-context.ts";

/** The request body: the log line `settlement_unsaved`, complete or with only these fields. */
export const unsavedSettlementBody = z.object({
  request_id: z
    .string()
    .check(z.regex(/^req_[0-9A-Za-z]{24}$/, "must be a request's id: req_ and 24 characters")),
  org_id: z.optional(z.string()),
  cost_micro: z.int().check(z.minimum(0)),
  generation: generationSchema,
});

/**
 * Handles `POST /orgs/{id}/settle`. Charges a settlement from the log once. The results `voided`
 * and `unknown` mean that nothing is charged.
 */
export async function postSettle(call: OperatorCall) {
  const fields = parseBody(unsavedSettlementBody, call.body);
  if (!fields.ok) return fields;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { request_id: id, org_id, cost_micro, generation } = fields.value;
  if (org_id !== undefined && org_id !== found.value.id) {
    return invalid("org_id must be the organization of the path.", "org_id");
  }
  const settlement = { id, cost: micros(cost_micro), generation };
  const answer = await call.wallet(found.value.id).settle(settlement, call.actor);
  if (!answer.ok) return answer;
  const { value } = answer;
  const isSettled = value.kind === "settled";
  return success({
    result: value.kind,
    charged_micro: isSettled ? value.charged : 0,
    shortfall_micro: isSettled ? value.shortfall : 0,
  });
}

/**
 * Handles `POST /orgs/{id}/rebuild-wallet`. Restores a lost wallet from D1. Returns 409 if the
 * wallet is intact.
 */
export async function postRebuildWallet(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const answer = await call.wallet(found.value.id).rebuild(found.value.id, call.actor);
  if (!answer.ok) return answer;
  // Adds payments made after the last publish. If this fails, the payments sweep retries it.
  await callObject(() => call.payments(found.value.id).poke());
  const { creditsMicro, heldMicro, openHolds } = answer.value;
  return success({ credits_micro: creditsMicro, held_micro: heldMicro, open_holds: openHolds });
}
