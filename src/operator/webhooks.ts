import { parseFields } from "../shared/http/parse-body.ts";
import { success } from "../shared/failure.ts";
import { callObject } from "../shared/reach-object.ts";
import {
  parseDeliveriesQuery,
  replaySchema,
  startWebhookReplay,
} from "../events/webhooks/deliveries.route.ts";
import {
  deliveriesView,
  webhookWithHealthView,
  testResultView,
} from "../events/webhooks/webhook-views.ts";
import { findWebhook, listWebhooks, webhookNotFound } from "../events/webhooks/webhooks.store.ts";
import type { OperatorCall } from "./operator-context.ts";
import { noFields, withOrganization } from "./organization-call.ts";

/** Handles `GET /orgs/{id}/webhooks`. */
export const getWebhooks = withOrganization(noFields, async (call, { id }) => {
  const rows = await listWebhooks(call.db, id);
  const health = await callObject(() => call.deliveries(id).health(), { attemptsMax: 1 });
  return success({ webhooks: rows.map((row) => webhookWithHealthView(row, health, call.now)) });
});

/** Handles `GET /orgs/{id}/webhooks/{webhook_id}/deliveries`. */
export async function getWebhookDeliveries(call: OperatorCall) {
  const query = parseDeliveriesQuery(call.url);
  if (!query.ok) return query;
  const { id, orgId } = idsOf(call);
  if ((await findWebhook(call.db, { id, orgId })) === null) return webhookNotFound();
  const found = await call.deliveries(orgId).deliveries(id, query.value);
  return found.ok ? success(deliveriesView(found.value)) : found;
}

/** Handles `POST /orgs/{id}/webhooks/{webhook_id}/test`. */
export async function postWebhookTest(call: OperatorCall) {
  const { id, orgId } = idsOf(call);
  const attempt = await call.deliveries(orgId).sendTest(orgId, id, call.actor);
  return attempt.ok ? success(testResultView(attempt.value)) : attempt;
}

/** Handles `POST /orgs/{id}/webhooks/{webhook_id}/replay`. */
export async function postWebhookReplay(call: OperatorCall) {
  const fields = parseFields(replaySchema, [], call.body);
  if (!fields.ok) return fields;
  const { id, orgId } = idsOf(call);
  if ((await findWebhook(call.db, { id, orgId })) === null) return webhookNotFound();
  return startWebhookReplay(fields.value, {
    since: (sinceMs, limit) => call.wallet(orgId).eventsSince(sinceMs, limit),
    queue: (events, replayId) => call.deliveries(orgId).replay(orgId, id, { events, replayId }),
    page: (query) => call.wallet(orgId).usageStream(query),
    restart: (from, first) => call.deliveries(orgId).restartStream(orgId, id, from, first),
  });
}

function idsOf({ params }: OperatorCall): { readonly id: string; readonly orgId: string } {
  return { id: params["webhook_id"] ?? "", orgId: params["id"] ?? "" };
}
