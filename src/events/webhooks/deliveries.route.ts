import * as z from "zod/mini";
import type { DeliveryQuery } from "../../shared/contracts/deliveries.ts";
import type { AppContext } from "../../shared/http/context.ts";
import {
  singleValueSchema,
  parseQuery,
  wholeNumberWithDefault,
} from "../../shared/http/parse-body.ts";
import { EVENT_TYPES } from "../../shared/event.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { deliveriesView, deliveryDetailView } from "./webhook-views.ts";
import { callDeliveries, findWebhookOfPath } from "./webhooks.route.ts";

export const deliveriesParameters = z.object({
  limit: wholeNumberWithDefault(1, 100, 50),
  after: z.optional(singleValueSchema),
  state: z.optional(z.enum(["pending", "delivered", "failed"])),
  type: z.optional(z.enum(EVENT_TYPES)),
});

export function deliveriesQuery(url: string): Result<DeliveryQuery> {
  const query = parseQuery(deliveriesParameters, url);
  if (!query.ok) return query;
  const { limit, after = null, state = null, type = null } = query.value;
  return success({ limit, after, state, type });
}

export async function deliveriesRoute(c: AppContext) {
  const query = deliveriesQuery(c.req.url);
  if (!query.ok) return query;
  const found = await findWebhookOfPath(c);
  if (!found.ok) return found;
  const { id } = found.value;
  const answer = await callDeliveries(c, (object) => object.deliveries(id, query.value));
  return answer.ok ? success(deliveriesView(answer.value)) : answer;
}

export async function deliveryRoute(c: AppContext) {
  const found = await findWebhookOfPath(c);
  if (!found.ok) return found;
  const { id } = found.value;
  const deliveryId = c.req.param("delivery_id") ?? "";
  const answer = await callDeliveries(c, (object) => object.delivery(id, deliveryId));
  return answer.ok ? success(deliveryDetailView(answer.value)) : answer;
}
