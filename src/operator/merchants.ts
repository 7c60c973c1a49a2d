import * as z from "zod/mini";
import {
  deleteMerchant,
  insertMerchant,
  listMerchants,
  mintMerchantSecret,
  rotateMerchantSecret,
} from "../accounts/merchants/merchants.store.ts";
import type { Merchant } from "../accounts/merchants/merchants.store.ts";
import { timestamp } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Refusal } from "../shared/failure.ts";
import { created } from "../shared/http/endpoint.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { OWN_MERCHANT_NAME } from "../shared/placed-hold.ts";
import type { OperatorCall } from "./operator-context.ts";

export const newMerchantSchema = z.object({
  name: z.string().check(
    z.regex(/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/, "must be 1 to 40 of a-z, 0-9 and hyphens"),
    z.refine((name) => name !== OWN_MERCHANT_NAME, `must not be '${OWN_MERCHANT_NAME}'`),
  ),
});

/** Handles `GET /merchants`. */
export async function getMerchants({ db }: OperatorCall) {
  const merchants = await listMerchants(db);
  return success({ merchants: merchants.map(merchantView) });
}

/** Handles `POST /merchants`. Returns 201 with the merchant and, only here, its secret. */
export async function postMerchant(call: OperatorCall) {
  const fields = parseFields(newMerchantSchema, [], call.body);
  if (!fields.ok) return fields;
  const { name } = fields.value;
  const secret = mintMerchantSecret();
  const merchantFields = { name, secret, by: call.actor.id ?? "", at: call.now };
  const merchant = await insertMerchant(call.db, merchantFields);
  if (merchant !== null) return created({ ...merchantView(merchant), secret });
  const message = "A merchant already has this name.";
  return refuse({ kind: "conflict", message, param: "name", code: "merchant_exists" });
}

/** Handles `POST /merchants/{name}/rotate`. */
export async function postMerchantRotation({ db, now, params }: OperatorCall) {
  const secret = mintMerchantSecret();
  const merchant = await rotateMerchantSecret(db, { name: params["name"] ?? "", secret, at: now });
  return merchant === null ? merchantNotFound() : success({ ...merchantView(merchant), secret });
}

/** Handles `DELETE /merchants/{name}`. */
export async function removeMerchant({ db, params }: OperatorCall) {
  const { name = "" } = params;
  return (await deleteMerchant(db, name)) ? success({ name, deleted: true }) : merchantNotFound();
}

function merchantNotFound(): Refusal {
  return refuse({ kind: "not_found", message: "No such merchant." });
}

function merchantView({ name, createdAt, rotatedAt, createdBy }: Merchant) {
  return {
    name,
    created_at: timestamp(createdAt),
    rotated_at: rotatedAt === null ? null : timestamp(rotatedAt),
    created_by: createdBy,
  };
}
