import * as z from "zod/mini";
import { gatewayFieldsSchema } from "../../src/models/core/gateway-fields.ts";
import { chatBodySchema } from "../../src/models/core/core-request.ts";
import { embeddingsBodySchema } from "../../src/models/core/embeddings.ts";
import {
  countTokensBodySchema,
  messagesBodySchema,
} from "../../src/models/protocols/messages/client-request.ts";
import { completionsBodySchema } from "../../src/models/endpoints/completions.ts";
import { responsesBodySchema } from "../../src/models/protocols/responses/client-request.ts";
import { messagesListQuerySchema } from "../../src/models/catalog/listed-model.ts";
import { pageQuerySchema } from "../../src/shared/http/parse-body.ts";
import { keysQuerySchema } from "../../src/accounts/keys/keys.route.ts";
import { keyChangeSchema, newKeySchema } from "../../src/accounts/keys/new-key.ts";
import { inputItemsQuerySchema } from "../../src/models/stored-responses/stored-responses.route.ts";
import {
  newKeySessionSchema,
  sessionsQuerySchema,
} from "../../src/accounts/keys/sessions.route.ts";
import { rotationSchema } from "../../src/accounts/keys/rotation.ts";
import { organizationChangeSchema } from "../../src/accounts/organizations/organization.ts";
import { ROUTES } from "../../src/routes.ts";
import type { KEY_ROUTES } from "../../src/routes.ts";
import {
  creditsQuerySchema,
  newPurchaseSchema,
  purchasesQuerySchema,
} from "../../src/money/payments/purchases.route.ts";
import {
  newWebhookSchema,
  webhookChangeSchema,
  webhookRotationSchema,
} from "../../src/events/webhooks/webhooks.route.ts";
import {
  deliveriesQuerySchema,
  resendDeliveriesSchema,
  replaySchema,
} from "../../src/events/webhooks/deliveries.route.ts";
import {
  endUserChangeSchema,
  endUsersQuerySchema,
  putEndUserSchema,
  settingsChangeSchema,
} from "../../src/money/wallet/routes/end-users.route.ts";
import { errorsQuerySchema } from "../../src/money/wallet/routes/errors.route.ts";
import {
  generationQuerySchema,
  generationsQuerySchema,
  holdsQuerySchema,
} from "../../src/money/wallet/routes/generations.route.ts";
import { eventsQuerySchema } from "../../src/money/wallet/routes/reads.route.ts";
import { exportQuerySchema } from "../../src/money/wallet/exports/exports.route.ts";
import { usageQuerySchema } from "../../src/money/wallet/routes/usage.route.ts";
import { BETA, idempotencyKey, LIST_VERSION, VERSION } from "./headers.ts";
import { described, operationsOf } from "./operation.ts";
import type { Description, DescriptionsOf, Operation } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import { PEOPLE_OPERATIONS, PREVIEW } from "./people-operations.ts";
import { HOLD_OPERATIONS } from "./hold-operations.ts";
import * as hooked from "./webhook-records.ts";
import * as paid from "./payment-records.ts";
import * as listed from "./model-records.ts";
import * as keyed from "./key-records.ts";
import { MEDIA_OPERATIONS } from "./media-operations.ts";
import { LIMIT_OPERATIONS } from "./limit-operations.ts";
import * as record from "./records.ts";
import { oneGeneration } from "./openrouter-records.ts";
import * as stream from "./streams.ts";
import * as spent from "./usage-records.ts";

const PAID_OPERATIONS: Readonly<Record<string, Description>> = {
  "POST /v1/chat/completions": described("Chat, as JSON or as a stream", {
    200: record.completion,
    description:
      "The format of OpenAI's chat completions. `x-cost-micro` is the cost. In a stream, the last chunk has the cost if the request sets `stream_options.include_usage` or `usage.include`.",
    body: z.extend(chatBodySchema, gatewayFieldsSchema.shape),
    events: stream.chatChunk,
  }),
  "POST /v1/completions": described("Legacy text completions, as JSON or as a stream", {
    200: record.textCompletion,
    body: z.extend(completionsBodySchema, gatewayFieldsSchema.shape),
    events: stream.textChunk,
  }),
  "POST /v1/embeddings": described("Embeddings of texts or token arrays", {
    200: record.embeddings,
    body: z.extend(embeddingsBodySchema, gatewayFieldsSchema.shape),
  }),
  ...MEDIA_OPERATIONS,
  "POST /v1/responses": described("OpenAI's Responses, as JSON or as a stream", {
    200: record.response,
    description:
      "The format of OpenAI's Responses. Responses are stored for `keep_responses_hours`, a setting of the organization, so that `previous_response_id` and `item_reference` can continue them. By default, nothing is stored, so send the whole input. Tools that run at a provider are dropped and listed in `x-dropped`. `usage.cost_micro` is the cost.",
    body: z.extend(responsesBodySchema, gatewayFieldsSchema.shape),
    events: stream.responseEvent,
    errors: ["previous_response_not_found"],
  }),
  "POST /v1/messages": described("Anthropic's Messages, as JSON or as a stream", {
    200: record.message,
    description:
      "The format of Anthropic's API. Errors have Anthropic's format too: `{ type: error, error: { type, message } }`. You can send the key as `x-api-key`.",
    body: z.extend(messagesBodySchema, gatewayFieldsSchema.shape),
    events: stream.messageEvent,
    headers: [VERSION, BETA],
  }),
  "POST /v1/messages/count_tokens": described("Count the tokens of a Messages request", {
    description: "The call is free.",
    200: record.counted,
    headers: [VERSION, BETA],
    body: countTokensBodySchema,
    errors: ["model_not_found", "paused"],
  }),
};

const OTHERS = {
  "GET /v1/credits": described("List added and removed credits, newest first", {
    200: paid.credits,
    description:
      "`sold` is null if you can't buy credits by card in this region. `owed_micro` is the amount that you owe after a refund or dispute. While it is above 0, paid requests return `payment_reversed`, and new credits first pay this debt.",
    query: creditsQuerySchema,
  }),
  "GET /v1/credits/purchases": described("List purchases, newest first, including automatic ones", {
    200: paid.purchases,
    query: purchasesQuerySchema,
    errors: ["payments_off"],
  }),
  "POST /v1/credits/purchases": described(
    "Buy credits on Stripe's payment page or with the saved card",
    {
      202: paid.purchase,
      description:
        "Requires an `Idempotency-Key`. A retry returns the same purchase. If the response has a `url`, send the customer there. To read the state, call the address in `Location`. The customer gets credits for the amount without tax.",
      body: newPurchaseSchema,
      hasLocation: true,
      headers: [idempotencyKey(true)],
      errors: [
        "payments_off",
        "no_saved_card",
        "purchase_in_progress",
        "purchase_limit",
        "idempotency_mismatch",
      ],
    },
  ),
  "GET /v1/credits/purchases/{id}": described("Read a purchase", {
    200: paid.purchase,
    errors: ["payments_off"],
  }),
  "POST /v1/credits/purchases/{id}/cancel": described("Cancel an unpaid purchase", {
    202: paid.purchase,
    description: "If the purchase was paid meanwhile, the payment is credited.",
    errors: ["payments_off"],
  }),
  "POST /v1/credits/portal": described("Create a link to Stripe's page for cards and invoices", {
    description: "The link is valid for a few minutes.",
    200: paid.portal,
    errors: ["payments_off", "no_purchases"],
  }),
  "GET /v1/responses/{id}": described("Read a stored response", {
    200: record.response,
    description:
      "With `include=reasoning.encrypted_content`, the response includes the model's reasoning, even if the original request didn't. You can't stream a stored response.",
    query: [{ name: "include", schema: { type: "string" } }],
  }),
  "DELETE /v1/responses/{id}": described("Delete a stored response", {
    200: record.deletedResponse,
    description: "Conversations that include this response can no longer be continued.",
  }),
  "GET /v1/responses/{id}/input_items": described(
    "List the conversation before a stored response, item by item",
    {
      200: record.inputItems,
      description:
        "Includes the items of earlier responses (`previous_response_id`). The default order is newest first.",
      query: inputItemsQuerySchema,
    },
  ),
  "GET /v1/models": described("List the models of this region, including aliases", {
    200: listed.listedModels,
    description:
      "`limit`, `after_id` and `before_id` apply only to Anthropic's list, which has pages. OpenAI's list is complete.",
    query: messagesListQuerySchema,
    headers: [LIST_VERSION],
  }),
  "GET /v1/models/{id}": described("Read a model; the slash in its ID can be raw or encoded", {
    200: listed.listedModel,
    headers: [LIST_VERSION],
    errors: ["model_not_allowed", "model_not_found"],
  }),
  "GET /v1/models/{id}/endpoints": described("List the providers of a model", {
    200: listed.modelEndpoints,
    description:
      "In the order of preference. The region measures the speeds of real requests in the last 30 minutes.",
    errors: ["model_not_allowed", "model_not_found"],
  }),
  "GET /v1/balance": described("Read the organization's balance", { 200: record.balance }),
  "GET /v1/usage": described(
    "Sum the spend by day, model, key, end user, member or tag, or by two of these",
    {
      200: spent.usage,
      description:
        "`from` and `to` are UTC days, both included. The default is the last 30 days, and the maximum is 366. With two groups such as `day,model`, each row also has its `day`. `tag:team` groups by the values of the tag `team`, which the setting `tag_keys` must list.",
      query: usageQuerySchema,
    },
  ),
  "GET /v1/exports": described("Read the newest day with final exports", {
    200: spent.exports,
  }),
  "GET /v1/exports/focus": described("Download the charges of a month or day as a FOCUS file", {
    200: spent.focus,
    description:
      "CSV in the FOCUS 1.3 format, readable as 1.2. Send `month` or `day` (UTC); the default is the current month. The date of a row is the date of its charge. Credits, refunds, corrections and taxes have separate rows.",
    files: ["text/csv"],
    query: exportQuerySchema,
  }),
  "GET /v1/holds": described("List open holds of requests and clients, oldest first", {
    200: spent.holds,
    query: holdsQuerySchema,
  }),
  ...HOLD_OPERATIONS,
  "GET /v1/generations": described("List requests, newest first", {
    200: spent.generations,
    description:
      "Includes running, failed and rejected requests. Fields that only settled requests have are null for them. The newest 100 failed or rejected requests of a key are stored, and `GET /v1/errors` counts all of them. `status=error` means `voided,expired,refused`. `status=failed` also includes charged requests with an error, and `status=succeeded` includes the other charged requests. `model`, `provider`, `key_id`, `status` and `code` accept several values, separated by commas. A page can have fewer requests than `limit`. If the response has `next_after`, older requests can follow.",
    query: generationsQuerySchema,
  }),
  "GET /v1/generations/{id}": described("Read a request", {
    200: spent.generation,
    description:
      "`id` is the ID of the request, which errors have too, or of its response. The fields are the same as in the list. A failed request can appear a few seconds later.",
  }),
  "GET /v1/generation": described("Read a request in OpenRouter's format", {
    200: oneGeneration,
    description:
      "`id` is the ID of the request or of its response. Fields that have no meaning here are null.",
    query: generationQuerySchema,
    errors: ["not_found"],
  }),
  "GET /v1/errors": described("Count failed and rejected requests by their errors", {
    200: spent.errors,
    description:
      "Counts by hour, key and code include requests that are no longer stored. Counts by `model`, `provider` (the last that was called) or `user`, and with the filters `model`, `provider` and `external_id`, include only stored requests. These counts are complete from `complete_from` on.",
    query: errorsQuerySchema,
  }),
  "GET /v1/alerts": described("List alerts of quotas and low balances, newest first", {
    200: record.alerts,
    query: pageQuerySchema,
  }),
  "GET /v1/events": described("List the events of the organization, newest first", {
    200: record.events,
    description:
      "Events are stored for a year, at most 100,000. `dropped` has the number of deleted events. `from` is included, and `to` is not.",
    query: eventsQuerySchema,
  }),
  "GET /v1/webhooks": described("List webhooks", { 200: hooked.webhooks }),
  "POST /v1/webhooks": described("Create a webhook; only this response contains its secret", {
    201: hooked.freshWebhook,
    body: newWebhookSchema,
    errors: ["too_many_webhooks"],
  }),
  "GET /v1/webhooks/{id}": described("Read a webhook and its health", { 200: hooked.shownWebhook }),
  "PATCH /v1/webhooks/{id}": described("Change, disable or enable a webhook", {
    200: hooked.webhook,
    body: webhookChangeSchema,
  }),
  "DELETE /v1/webhooks/{id}": described("Delete a webhook", { 200: record.deleted }),
  "POST /v1/webhooks/{id}/rotate": described(
    "Replace a webhook's secret; both secrets sign until the overlap ends",
    { 200: hooked.freshWebhook, body: webhookRotationSchema },
  ),
  "POST /v1/webhooks/{id}/test": described("Send the event `webhook.test` and return the result", {
    200: hooked.webhookTest,
  }),
  "GET /v1/webhooks/{id}/deliveries": described("List sent and pending deliveries, newest first", {
    200: hooked.deliveries,
    query: deliveriesQuerySchema,
  }),
  "GET /v1/webhooks/{id}/deliveries/{delivery_id}": described(
    "Read a delivery: its body, headers, and the responses to its newest attempts",
    { 200: hooked.deliveryDetail },
  ),
  "POST /v1/webhooks/{id}/resend": described(
    "Resend one delivery, or all failed or pending ones, immediately",
    {
      202: hooked.resent,
      description:
        "Send either `delivery_id` for one delivery, or `state` for all deliveries in this state.",
      body: resendDeliveriesSchema,
      errors: ["webhook_disabled"],
    },
  ),
  "POST /v1/webhooks/{id}/replay": described(
    "Replay events since a time, 1,000 per call, or restart the usage stream",
    {
      description: hooked.REPLAY,
      202: hooked.replayed,
      body: replaySchema,
      errors: ["webhook_disabled", "replay_in_progress"],
    },
  ),
  "GET /v1/keys": described("List keys, newest first", { 200: keyed.keys, query: keysQuerySchema }),
  "POST /v1/keys": described("Create a key", {
    201: keyed.freshKey,
    description:
      "The key belongs to the calling member. Only this response contains the key itself.",
    body: newKeySchema,
    headers: [idempotencyKey(false)],
    errors: ["too_many_keys", "idempotency_replay", "idempotency_mismatch"],
  }),
  "PATCH /v1/keys/{id}": described("Change a key's name or limits, immediately", {
    200: keyed.key,
    description:
      "Members and billing members can only tighten limits. Admins can only tighten the limits of an owner's key.",
    body: keyChangeSchema,
    errors: ["role_required"],
  }),
  "GET /v1/key": described("Read the calling key and the rest of its limits", {
    200: keyed.ownKey,
  }),
  "GET /v1/auth/key": described("Read the calling key, under OpenRouter's older path", {
    200: keyed.ownKey,
  }),
  "DELETE /v1/keys/{id}": described("Revoke a key in every region, immediately", {
    200: keyed.revokedKey,
  }),
  "POST /v1/sessions": described(
    "Create a short-lived token of the calling key, for a browser, an agent run or a child process",
    {
      201: keyed.freshSession,
      description:
        "The session can pay and read within its own limits and those of its key, and can't call management endpoints. It is stored only after its first use, and ends with its key.",
      body: newKeySessionSchema,
    },
  ),
  "GET /v1/sessions": described("List active sessions with their spend, from their first use on", {
    200: keyed.sessions,
    query: sessionsQuerySchema,
  }),
  "DELETE /v1/sessions/{id}": described("End a session in every region, immediately", {
    200: keyed.endedSession,
    errors: ["too_many_sessions"],
  }),
  "POST /v1/keys/{id}/rotate": described(
    "Replace a key's secret; older secrets end after the overlap",
    {
      201: keyed.rotatedKey,
      description:
        "Requires an `Idempotency-Key`. A retry within a day returns the same secret. The key keeps its ID, name, limits and spend. With an overlap of 0, all older secrets end immediately. With `end_sessions`, all sessions of the key end too. You can rotate only your own member's keys, and a limited key can rotate only itself.",
      body: rotationSchema,
      headers: [idempotencyKey(true)],
      errors: ["too_many_secrets", "idempotency_mismatch"],
    },
  ),
  ...LIMIT_OPERATIONS,
  "GET /v1/users": described("List end users with their current spend, in order of creation", {
    200: record.endUsers,
    query: endUsersQuerySchema,
  }),
  "POST /v1/users": described("Create an end user, or change an existing one", {
    200: record.endUser,
    201: record.endUser,
    body: putEndUserSchema,
    errors: ["too_many_end_users"],
  }),
  "GET /v1/users/{external_id}": described("Read an end user with its current spend", {
    200: record.endUser,
  }),
  "PATCH /v1/users/{external_id}": described("Change an end user's quotas, immediately", {
    200: record.endUser,
    body: endUserChangeSchema,
  }),
  "DELETE /v1/users/{external_id}": described("Delete an end user", {
    200: record.deletedEndUser,
    errors: ["conflict"],
  }),
  "GET /v1/orgs/{org_id}": described("Read the organization's name and slug", {
    200: record.organization,
  }),
  "PATCH /v1/orgs/{org_id}": described("Change the organization's name or slug", {
    200: record.organization,
    body: organizationChangeSchema,
    errors: ["conflict"],
  }),
  "GET /v1/orgs/{org_id}/settings": described("Read the organization's settings", {
    200: record.settings,
  }),
  "PATCH /v1/orgs/{org_id}/settings": described("Change settings; omitted fields stay unchanged", {
    200: record.settings,
    body: settingsChangeSchema,
    errors: ["payments_off"],
  }),
} satisfies DescriptionsOf<(typeof KEY_ROUTES)[number]>;

export const OPERATIONS: readonly Operation[] = operationsOf([...ROUTES, PREVIEW], {
  ...PAID_OPERATIONS,
  ...OTHERS,
  ...OPERATOR_OPERATIONS,
  ...PEOPLE_OPERATIONS,
});
