import * as z from "zod/mini";
import { gatewayFields } from "../../src/models/core/gateway-fields.ts";
import { chatBody } from "../../src/models/core/core-request.ts";
import { embeddingsBody } from "../../src/models/core/embeddings.ts";
import { countBody, messagesBody } from "../../src/models/protocols/messages/client-request.ts";
import { completionsBody } from "../../src/models/endpoints/completions.ts";
import { responsesBody } from "../../src/models/protocols/responses/client-request.ts";
import { messagesListQuery } from "../../src/models/catalog/messages-list.ts";
import { pageQuery } from "../../src/shared/http/parse-body.ts";
import { keysParameters } from "../../src/accounts/keys/keys.route.ts";
import { keyChangeSchema, newKeySchema } from "../../src/accounts/keys/new-key.ts";
import { inputItemsQuery } from "../../src/models/stored-responses/stored-responses.route.ts";
import { newSessionSchema, sessionsParameters } from "../../src/accounts/keys/sessions.route.ts";
import { rotationSchema } from "../../src/accounts/keys/rotation.ts";
import { organizationChangeSchema } from "../../src/accounts/organizations/organization.ts";
import { ROUTES } from "../../src/routes.ts";
import type { KEY_ROUTES } from "../../src/routes.ts";
import {
  creditsQuery,
  purchaseBody,
  purchasesQuery,
} from "../../src/money/payments/purchases.route.ts";
import {
  newWebhookSchema,
  webhookChangeSchema,
  webhookRotationSchema,
} from "../../src/events/webhooks/webhooks.route.ts";
import { deliveriesParameters } from "../../src/events/webhooks/deliveries.route.ts";
import { replaySchema } from "../../src/events/webhooks/replay.route.ts";
import { resendSchema } from "../../src/events/webhooks/resend.route.ts";
import {
  changeBody,
  endUsersQuery,
  putBody,
  settingsBody,
} from "../../src/money/wallet/routes/end-users.route.ts";
import { errorsQuery } from "../../src/money/wallet/routes/errors.route.ts";
import {
  generationQuery,
  generationsQuery,
  holdsQuery,
} from "../../src/money/wallet/routes/generations.route.ts";
import { eventsParameters } from "../../src/money/wallet/routes/reads.route.ts";
import { focusQuery } from "../../src/money/wallet/exports/exports.route.ts";
import { usageParameters } from "../../src/money/wallet/routes/usage.route.ts";
import { BETA, idempotencyKey, LIST_VERSION, PAID_HEADERS, VERSION } from "./headers.ts";
import { described, operationsOf } from "./operation.ts";
import type { Description, DescriptionsOf, Operation } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import { PEOPLE_OPERATIONS, PREVIEW } from "./people-operations.ts";
import { PAID } from "./failures.ts";
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
      "As OpenAI's chat completions. `x-cost-micro` says what it cost; a stream says so in its last chunk when it asked for `stream_options.include_usage` or `usage.include`.",
    body: z.extend(chatBody, gatewayFields.shape),
    events: stream.chatChunk,
    headers: PAID_HEADERS,
    errors: PAID,
  }),
  "POST /v1/completions": described("Legacy text completions, as JSON or as a stream", {
    200: record.textCompletion,
    body: z.extend(completionsBody, gatewayFields.shape),
    events: stream.textChunk,
    headers: PAID_HEADERS,
    errors: PAID,
  }),
  "POST /v1/embeddings": described("Embeddings of texts or token arrays", {
    200: record.embeddings,
    body: z.extend(embeddingsBody, gatewayFields.shape),
    headers: PAID_HEADERS,
    errors: PAID,
  }),
  ...MEDIA_OPERATIONS,
  "POST /v1/responses": described("OpenAI's Responses, as JSON or as a stream", {
    200: record.response,
    description:
      "As OpenAI's Responses. Answers are kept, so that `previous_response_id` and `item_reference` continue them, for as long as the organization's setting `keep_responses_hours` says; at first nothing is kept, and the whole input is to be sent. Tools that run at a provider are left out and named in `x-dropped`. `usage.cost_micro` says what it cost.",
    body: z.extend(responsesBody, gatewayFields.shape),
    events: stream.responseEvent,
    headers: PAID_HEADERS,
    errors: [...PAID, "previous_response_not_found"],
  }),
  "POST /v1/messages": described("Anthropic's Messages, as JSON or as a stream", {
    200: record.message,
    description:
      "As Anthropic's API, with its errors' shape: `{ type: error, error: { type, message } }`. The key may come as `x-api-key`.",
    body: z.extend(messagesBody, gatewayFields.shape),
    events: stream.messageEvent,
    headers: [...PAID_HEADERS, VERSION, BETA],
    errors: PAID,
  }),
  "POST /v1/messages/count_tokens": described("How many tokens a Messages request has; free", {
    200: record.counted,
    headers: [VERSION, BETA],
    body: countBody,
    errors: ["model_not_found", "paused"],
  }),
};

const OTHERS = {
  "GET /v1/credits": described("What came in and went back, newest first, and how buying stands", {
    200: paid.credits,
    description:
      "`sold` is null where credits are not sold by card. `owed_micro` is what went back of payments and is not paid for: while it is above 0, paid requests are refused with `payment_reversed`, and what comes in pays it first.",
    query: creditsQuery,
  }),
  "GET /v1/credits/purchases": described("Purchases, newest first, automatic ones too", {
    200: paid.purchases,
    query: purchasesQuery,
    errors: ["payments_off"],
  }),
  "POST /v1/credits/purchases": described(
    "Buy credits, on a page of Stripe's or by the saved card",
    {
      202: paid.purchase,
      description:
        "Needs an `Idempotency-Key`: a repeat is the same purchase. It goes on by itself: send the customer to `url` where there is one, and ask `Location` for its state. Credits are what is paid without tax.",
      body: purchaseBody,
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
  "GET /v1/credits/purchases/{id}": described("One purchase", {
    200: paid.purchase,
    errors: ["payments_off"],
  }),
  "POST /v1/credits/purchases/{id}/cancel": described(
    "Close a purchase that nobody has paid; what was paid meanwhile is credited all the same",
    { 202: paid.purchase, errors: ["payments_off"] },
  ),
  "POST /v1/credits/portal": described(
    "A link to Stripe's page for cards, addresses and invoices, good for minutes",
    { 200: paid.portal, errors: ["payments_off", "no_purchases"] },
  ),
  "GET /v1/responses/{id}": described("A response that is kept, as it was given", {
    200: record.response,
    description:
      "With `include=reasoning.encrypted_content` also what its request did not ask to see of the model's reasoning. It cannot be streamed again.",
    query: [{ name: "include", schema: { type: "string" } }],
  }),
  "DELETE /v1/responses/{id}": described("Forget a response that is kept", {
    200: record.deletedResponse,
    description: "A conversation that went on from it cannot be continued any more.",
  }),
  "GET /v1/responses/{id}/input_items": described(
    "The conversation that a kept response answered, item by item",
    {
      200: record.inputItems,
      description:
        "All of it, also what came by `previous_response_id`; newest first unless asked otherwise.",
      query: inputItemsQuery,
    },
  ),
  "GET /v1/models": described("What is live in this region, aliases included", {
    200: listed.listedModels,
    description:
      "`limit`, `after_id` and `before_id` are of Anthropic's list alone, which is in pages; OpenAI's is whole.",
    query: messagesListQuery,
    headers: [LIST_VERSION],
  }),
  "GET /v1/models/{id}": described("One model; the slash in its id may be raw or encoded", {
    200: listed.listedModel,
    headers: [LIST_VERSION],
    errors: ["model_not_allowed", "model_not_found"],
  }),
  "GET /v1/models/{id}/endpoints": described("The providers of a model, with prices and speeds", {
    200: listed.modelEndpoints,
    description:
      "In the order of preference. The region measures the speeds of real requests in the last 30 minutes.",
    errors: ["model_not_allowed", "model_not_found"],
  }),
  "GET /v1/balance": described("What the organization has", { 200: record.balance }),
  "GET /v1/usage": described(
    "Spend by day, model, key, end user, member or tag, or by two of these",
    {
      200: spent.usage,
      description:
        "Days are UTC and both included; the last 30 unless said, at most 366. By `day,model`, say, each row has its `day` as well. `tag:team` groups by the values of the tag `team`, which the setting `tag_keys` must list.",
      query: usageParameters,
    },
  ),
  "GET /v1/exports": described("The newest day whose exports are final", { 200: spent.exports }),
  "GET /v1/exports/focus": described("Charges of a month or day as a FOCUS file", {
    200: spent.focus,
    description:
      "CSV in the FOCUS 1.3 format, readable as 1.2. Send `month` or `day` (UTC); the default is the current month. Rows are dated by their charge. Credits, refunds, corrections and taxes are rows of their own.",
    files: ["text/csv"],
    query: focusQuery,
  }),
  "GET /v1/holds": described("Open holds of requests and of clients, oldest first", {
    200: spent.holds,
    query: holdsQuery,
  }),
  ...HOLD_OPERATIONS,
  "GET /v1/generations": described("Requests, newest first", {
    200: spent.generations,
    description:
      "Every request to a paid path while it is kept, also those that are running, failed or were refused: what only a settled one has is null there. Of those that failed or were refused the newest 100 of a key are kept by themselves, and what was before is counted in `GET /v1/errors`. `status=error` stands for `voided,expired,refused`; `model`, `provider`, `key_id`, `status` and `code` take several values by comma. A page may be shorter than `limit`: while there is `next_after`, older ones may follow.",
    query: generationsQuery,
  }),
  "GET /v1/generations/{id}": described("What happened to one request", {
    200: spent.generation,
    description:
      "By the request's id, which is that of every error too, or by the id of its answer, whatever became of it: as the list has it. What failed may take a few seconds to be found.",
  }),
  "GET /v1/generation": described("One request in the shape of OpenRouter's API", {
    200: oneGeneration,
    description:
      "`id` is the ID of the request or of its response. Fields that have no meaning here are null.",
    query: generationQuery,
    errors: ["not_found"],
  }),
  "GET /v1/errors": described("How many requests failed or were refused, and by what", {
    200: spent.errors,
    description:
      "Counted by hour, key and code; all of them, also those that are no longer kept by themselves. By `model`, `provider` (the last that was asked) or `user` of those that are kept by themselves, and `model`, `provider` and `external_id` choose among these; `complete_from` says since when that is all.",
    query: errorsQuery,
  }),
  "GET /v1/alerts": described("Quotas reached and balances that ran low, newest first", {
    200: record.alerts,
    query: pageQuery,
  }),
  "GET /v1/events": described("What happened to the organization, newest first", {
    200: record.events,
    description:
      "Kept for a year, at most 100,000 of them; `dropped` says what that has cost. `from` is included, `to` is not.",
    query: eventsParameters,
  }),
  "GET /v1/webhooks": described("Where events are sent", { 200: hooked.webhooks }),
  "POST /v1/webhooks": described("Send events to a URL; its secret is shown this once", {
    201: hooked.freshWebhook,
    body: newWebhookSchema,
    errors: ["too_many_webhooks"],
  }),
  "GET /v1/webhooks/{id}": described("One webhook, and how it does", { 200: hooked.shownWebhook }),
  "PATCH /v1/webhooks/{id}": described("Change a webhook, or switch it off and on", {
    200: hooked.webhook,
    body: webhookChangeSchema,
  }),
  "DELETE /v1/webhooks/{id}": described("Send nothing more to it", { 200: record.deleted }),
  "POST /v1/webhooks/{id}/rotate": described(
    "A new secret; the one before signs as well until the overlap ends",
    { 200: hooked.freshWebhook, body: webhookRotationSchema },
  ),
  "POST /v1/webhooks/{id}/test": described("Send `webhook.test` now, and say what came of it", {
    200: hooked.webhookTest,
  }),
  "GET /v1/webhooks/{id}/deliveries": described("What was sent and what waits, newest first", {
    200: hooked.deliveries,
    query: deliveriesParameters,
  }),
  "GET /v1/webhooks/{id}/deliveries/{delivery_id}": described(
    "One delivery: its body, its headers, and what its newest attempts were answered",
    { 200: hooked.deliveryDetail },
  ),
  "POST /v1/webhooks/{id}/resend": described(
    "Send one delivery again now, or all that failed or wait",
    {
      202: hooked.resent,
      description: "`delivery_id` names one, `state` all in it; say one of the two.",
      body: resendSchema,
      errors: ["webhook_disabled"],
    },
  ),
  "POST /v1/webhooks/{id}/replay": described(
    "Send events since a time again, 1,000 a call, or restart the usage stream",
    {
      description: hooked.REPLAY,
      202: hooked.replayed,
      body: replaySchema,
      errors: ["webhook_disabled", "replay_in_progress"],
    },
  ),
  "GET /v1/keys": described("Keys, newest first", { 200: keyed.keys, query: keysParameters }),
  "POST /v1/keys": described("Create a key", {
    201: keyed.freshKey,
    description:
      "The key belongs to the calling member. The response is the only one with the key itself.",
    body: newKeySchema,
    headers: [idempotencyKey(false)],
    errors: ["too_many_keys", "idempotency_replay", "idempotency_mismatch"],
  }),
  "PATCH /v1/keys/{id}": described(
    "Change a key: its name, its limits; what is new counts from this answer on",
    {
      200: keyed.key,
      description:
        "Only to something tighter with a key of neither owner nor admin, and of an owner's key with any but an owner's.",
      body: keyChangeSchema,
      errors: ["role_required"],
    },
  ),
  "GET /v1/key": described("The calling key, what is left of each limit, and when it comes back", {
    200: keyed.ownKey,
  }),
  "GET /v1/auth/key": described("The calling key, under OpenRouter's older path", {
    200: keyed.ownKey,
  }),
  "DELETE /v1/keys/{id}": described("Revoke a key, everywhere, from this answer on", {
    200: keyed.revokedKey,
  }),
  "POST /v1/sessions": described(
    "A short-lived token of the calling key, for a browser, an agent's run or a child process",
    {
      201: keyed.freshSession,
      description:
        "It pays and looks within the key's limits and its own, and manages nothing. Nothing of it is stored before it is used; it dies with its key.",
      body: newSessionSchema,
    },
  ),
  "GET /v1/sessions": described("Sessions that were used and are alive, with their spend", {
    200: keyed.sessions,
    query: sessionsParameters,
  }),
  "DELETE /v1/sessions/{id}": described("End a session, everywhere, from this answer on", {
    200: keyed.endedSession,
    errors: ["too_many_sessions"],
  }),
  "POST /v1/keys/{id}/rotate": described(
    "A new secret for a key; the others end after the overlap",
    {
      201: keyed.rotatedKey,
      description:
        "Needs an `Idempotency-Key`: a repeat within a day is the same secret. Id, name, limits and spend of the key stay. With an overlap of 0 every other secret is dead from this answer on, and with `end_sessions` all sessions that the key had, used or not. Only keys of the caller's own member, which a secret acts as; a key with limits itself alone.",
      body: rotationSchema,
      headers: [idempotencyKey(true)],
      errors: ["too_many_secrets", "idempotency_mismatch"],
    },
  ),
  ...LIMIT_OPERATIONS,
  "GET /v1/users": described("End users with their spend of now, in the order of creation", {
    200: record.endUsers,
    query: endUsersQuery,
  }),
  "POST /v1/users": described("Create an end user, or change an existing one", {
    200: record.endUser,
    201: record.endUser,
    body: putBody,
    errors: ["too_many_end_users"],
  }),
  "GET /v1/users/{external_id}": described("One end user with its spend of now", {
    200: record.endUser,
  }),
  "PATCH /v1/users/{external_id}": described("Change quotas, from the next request on", {
    200: record.endUser,
    body: changeBody,
  }),
  "DELETE /v1/users/{external_id}": described("Forget an end user", { 200: record.deletedEndUser }),
  "GET /v1/orgs/{org_id}": described("The organization's name and slug", {
    200: record.organization,
  }),
  "PATCH /v1/orgs/{org_id}": described("Change its name or slug", {
    200: record.organization,
    body: organizationChangeSchema,
    errors: ["conflict"],
  }),
  "GET /v1/orgs/{org_id}/settings": described(
    "Defaults of new end users, and the low-balance line",
    { 200: record.settings },
  ),
  "PATCH /v1/orgs/{org_id}/settings": described("Change settings; what the body leaves out stays", {
    200: record.settings,
    body: settingsBody,
    errors: ["payments_off"],
  }),
} satisfies DescriptionsOf<(typeof KEY_ROUTES)[number]>;

export const OPERATIONS: readonly Operation[] = operationsOf([...ROUTES, PREVIEW], {
  ...PAID_OPERATIONS,
  ...OTHERS,
  ...OPERATOR_OPERATIONS,
  ...PEOPLE_OPERATIONS,
});
