import { accepted } from "../http/endpoint.ts";
import type { Answer } from "../http/endpoint.ts";
import { parseFields } from "../http/parse-body.ts";
import { success } from "../lib/failure.ts";
import {
  deliveriesQuery,
  deliveriesView,
  replay,
  replaySchema,
  testView,
  webhookView,
} from "../webhooks/webhooks.route.ts";
import { findWebhook, listWebhooks, noSuchWebhook } from "../webhooks/webhooks.store.ts";
import type { OperatorContext, OperatorRequest } from "./operator-context.ts";
import { organizationOf } from "./organizations.ts";

/** `GET /orgs/{id}/webhooks`: as `GET /v1/webhooks`. */
export async function getWebhooks(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const found = await organizationOf(context, request);
  if (!found.ok) return found;
  const rows = await listWebhooks(context.db, found.value.id);
  return success({ webhooks: rows.map((row) => webhookView(row, context.now)) });
}

/** `GET /orgs/{id}/webhooks/{webhook_id}/deliveries?limit&after`: newest first. */
export async function getDeliveries(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const asked = deliveriesQuery(request.url);
  if (!asked.ok) return asked;
  const { id, orgId } = namesOf(request);
  if ((await findWebhook(context.db, { id, orgId })) === null) return noSuchWebhook();
  const found = await context.deliveries(orgId).deliveries(id, asked.value);
  return found.ok ? success(deliveriesView(found.value)) : found;
}

/** `POST /orgs/{id}/webhooks/{webhook_id}/test`: sends `webhook.test` now, once, and says what came of it. */
export async function postTest(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const { id, orgId } = namesOf(request);
  const attempt = await context.deliveries(orgId).sendTest(orgId, id, context.actor);
  return attempt.ok ? success(testView(attempt.value)) : attempt;
}

/** `POST /orgs/{id}/webhooks/{webhook_id}/replay`: as `POST /v1/webhooks/{id}/replay`. */
export async function postReplay(
  context: OperatorContext,
  request: OperatorRequest,
): Promise<Answer> {
  const fields = parseFields(replaySchema, [], request.body);
  if (!fields.ok) return fields;
  const { id, orgId } = namesOf(request);
  if ((await findWebhook(context.db, { id, orgId })) === null) return noSuchWebhook();
  const replayed = await replay({
    since: (limit) => context.wallet(orgId).eventsSince(fields.value.since, limit),
    queue: (events) => context.deliveries(orgId).replay(orgId, id, events),
  });
  return replayed.ok ? accepted(replayed.value) : replayed;
}

function namesOf({ params }: OperatorRequest): { readonly id: string; readonly orgId: string } {
  return { id: params["webhook_id"] ?? "", orgId: params["id"] ?? "" };
}
