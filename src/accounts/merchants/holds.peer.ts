import type { AppContext } from "../../shared/http/context.ts";
import type { PlacedHold } from "../../shared/contracts/holds.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { refuse } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import { callObject } from "../../shared/reach-object.ts";
import { refuseUnknownHold } from "../../money/wallet/routes/holds.route.ts";
import { findOrganization } from "../organizations/organizations.store.ts";
import { merchantResultToJson, parseMerchantRequest } from "./peer-hold.ts";
import type { MerchantRequest } from "./peer-hold.ts";

/**
 * Handles POST /internal/v1/holds, a merchant's action on a hold. The calling region has verified
 * the merchant's secret.
 */
export async function handlePeerHoldAction(c: AppContext): Promise<Response> {
  const request = parseMerchantRequest(c.var.peerBody);
  const result =
    request === null
      ? refuse({ kind: "storage_unavailable" })
      : await applyMerchantAction(c, request);
  return c.json(merchantResultToJson(result));
}

export async function applyMerchantAction(
  c: AppContext,
  { merchant, orgId, id, action }: MerchantRequest,
): Promise<Result<PlacedHold>> {
  const find = (): ReturnType<typeof findOrganization> => findOrganization(c.env.DB, orgId);
  const fields = { request_id: c.var.requestId, org_id: orgId };
  const found = await queryDatabase(find, "organization_unreadable", fields);
  if (!found.ok) return found;
  if (found.value === null) return refuseUnknownHold();
  const by = { kind: "merchant", name: merchant } as const;
  const wallet = () => objectsOf(c.env).wallet(orgId);
  if (action !== null) return callObject(() => wallet().changeHold({ id, by, action }, null));
  const placed = await callObject(() => wallet().placedHold(id));
  return placed.ok && placed.value.merchant !== merchant ? refuseUnknownHold() : placed;
}
