import * as z from "zod/mini";
import type { ResendSelection } from "../../shared/contracts/deliveries.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { accepted, readFields } from "../../shared/http/endpoint.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { callDeliveries } from "./webhooks.route.ts";

export const resendSchema = z.object({
  delivery_id: z.optional(
    z.string().check(z.regex(/^dlv_[0-9A-Za-z]{24}$/, "must be a delivery's id")),
  ),
  state: z.optional(z.enum(["failed", "pending"])),
});

export async function resendRoute(c: AppContext) {
  const fields = await readFields(c, resendSchema, []);
  if (!fields.ok) return fields;
  const selection = readSelection(fields.value);
  if (!selection.ok) return selection;
  const { orgId } = c.var.admitted.caller;
  const id = c.req.param("id") ?? "";
  const result = await callDeliveries(c, (object) => object.resend(orgId, id, selection.value));
  return result.ok ? accepted({ queued: result.value }) : result;
}

function readSelection({
  delivery_id,
  state,
}: z.infer<typeof resendSchema>): Result<ResendSelection> {
  if (delivery_id !== undefined && state === undefined) return success({ deliveryId: delivery_id });
  if (state !== undefined && delivery_id === undefined) return success({ state });
  return invalid("Send either 'delivery_id' or 'state'.", "delivery_id");
}
