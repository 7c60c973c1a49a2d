import { chatBody, embeddingsBody } from "../../src/inference/core-request.ts";
import { countBody, messagesBody } from "../../src/inference/doors/messages/request.ts";
import { completionsBody } from "../../src/inference/doors/completions.ts";
import { responsesBody } from "../../src/inference/doors/responses/request.ts";
import { keyChangeSchema, newKeySchema } from "../../src/keys/new-key.ts";
import { OPERATOR_ENDPOINTS } from "../../src/operator/endpoints.ts";
import { newSessionSchema } from "../../src/keys/sessions.route.ts";
import { rotationSchema } from "../../src/keys/rotation.ts";
import { organizationChangeSchema } from "../../src/organizations/organization.ts";
import { PATHS } from "../../src/paths.ts";
import type { Path } from "../../src/paths.ts";
import {
  newWebhookSchema,
  replaySchema,
  webhookChangeSchema,
  webhookRotationSchema,
} from "../../src/webhooks/webhooks.route.ts";
import { changeBody, putBody, settingsBody } from "../../src/wallet/routes/end-users.route.ts";
import {
  EVENTS,
  GENERATIONS,
  INPUT_ITEMS,
  AFTER,
  MISSING,
  operationsOf,
  PAGE,
  PAGE_OR_AFTER,
  USAGE,
} from "./operation.ts";
import type { Description, Operation } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import * as record from "./records.ts";
import * as spent from "./usage-records.ts";

const PAID = [
  "insufficient_balance",
  "key_budget_exceeded",
  "organization_suspended",
  "model_not_allowed",
  "model_not_found",
  "context_length_exceeded",
  "end_user_quota_exceeded",
  "tokens",
  "too_many_end_users",
  "idempotency_replay",
  "idempotency_in_progress",
  "idempotency_mismatch",
  "upstream_error",
  "upstream_overloaded",
] as const;
const CHANGE = ["organization_suspended"] as const;

const PAID_OPERATIONS: Readonly<Record<string, Description>> = {
  "POST /v1/chat/completions": {
    tag: "Inference",
    summary: "Chat, as JSON or as a stream",
    description:
      "As OpenAI's chat completions. `x-cost-micro` says what it cost; a stream says so in its last chunk when it asked for `stream_options.include_usage`.",
    body: chatBody,
    answers: { 200: record.completion },
    errors: PAID,
  },
  "POST /v1/completions": {
    tag: "Inference",
    summary: "Legacy text completions, as JSON or as a stream",
    body: completionsBody,
    answers: { 200: record.textCompletion },
    errors: PAID,
  },
  "POST /v1/embeddings": {
    tag: "Inference",
    summary: "Embeddings of texts or token arrays",
    body: embeddingsBody,
    answers: { 200: record.embeddings },
    errors: PAID,
  },
  "POST /v1/responses": {
    tag: "Inference",
    summary: "OpenAI's Responses, as JSON or as a stream",
    description:
      "As OpenAI's Responses. Answers are kept, so that `previous_response_id` and `item_reference` continue them, for as long as the organisation's setting `keep_responses_hours` says; at first nothing is kept, and the whole input is to be sent. Tools that run at a provider are left out and named in `x-dropped`. `usage.cost_micro` says what it cost.",
    body: responsesBody,
    answers: { 200: record.response },
    errors: [...PAID, "previous_response_not_found"],
  },
  "POST /v1/messages": {
    tag: "Inference",
    summary: "Anthropic's Messages, as JSON or as a stream",
    description:
      "As Anthropic's API, with its errors' shape: `{ type: error, error: { type, message } }`. The key may come as `x-api-key`.",
    body: messagesBody,
    answers: { 200: record.message },
    errors: PAID,
  },
  "POST /v1/messages/count_tokens": {
    tag: "Inference",
    summary: "How many tokens a Messages request has; free",
    body: countBody,
    answers: { 200: record.counted },
    errors: ["model_not_found"],
  },
};

const ORGANIZATION_OPERATIONS: Readonly<Record<string, Description>> = {
  "GET /v1/responses/{id}": {
    tag: "Inference",
    summary: "A response that is kept, as it was given",
    description:
      "With `include=reasoning.encrypted_content` also what its request did not ask to see of the model's reasoning. It cannot be streamed again.",
    answers: { 200: record.response },
    errors: MISSING,
  },
  "DELETE /v1/responses/{id}": {
    tag: "Inference",
    summary: "Forget a response that is kept",
    description: "A conversation that went on from it cannot be continued any more.",
    answers: { 200: record.deletedResponse },
    errors: [...MISSING, ...CHANGE],
  },
  "GET /v1/responses/{id}/input_items": {
    tag: "Inference",
    summary: "The conversation that a kept response answered, item by item",
    description:
      "All of it, also what came by `previous_response_id`; newest first unless asked otherwise.",
    query: INPUT_ITEMS,
    answers: { 200: record.inputItems },
    errors: MISSING,
  },
  "GET /v1/models": {
    tag: "Models",
    summary: "What is live in this region, aliases included",
    answers: { 200: record.listedModels },
  },
  "GET /v1/models/{id}": {
    tag: "Models",
    summary: "One model; the slash in its id may be raw or encoded",
    answers: { 200: record.listedModel },
    errors: ["model_not_found"],
  },
  "GET /v1/balance": {
    tag: "Money",
    summary: "What the organisation has",
    answers: { 200: record.balance },
  },
  "GET /v1/usage": {
    tag: "Money",
    summary: "Spend by day, model, key or end user, or by day and one of these",
    description:
      "Days are UTC and both included; the last 30 unless said, at most 366. By `day,model`, say, each row has its `day` as well.",
    query: USAGE,
    answers: { 200: spent.usage },
    errors: ["role_required"],
  },
  "GET /v1/holds": {
    tag: "Money",
    summary: "Requests under way, and what each holds of the balance",
    query: AFTER,
    answers: { 200: spent.holds },
  },
  "GET /v1/generations": {
    tag: "Money",
    summary: "Receipts, newest first",
    description:
      "Every paid request while it is kept, also those that are under way or came to nothing: what only a settled one has is null there. A page may be shorter than `limit`: while there is `next_after`, older ones may follow.",
    query: GENERATIONS,
    answers: { 200: spent.generations },
  },
  "GET /v1/generations/{id}": {
    tag: "Money",
    summary: "The receipt of one paid request",
    description: "Of one that is under way or came to nothing too, as the list has it.",
    answers: { 200: spent.generation },
    errors: MISSING,
  },
  "GET /v1/alerts": {
    tag: "Money",
    summary: "Quotas reached and balances that ran low, newest first",
    query: PAGE,
    answers: { 200: record.alerts },
    errors: ["role_required"],
  },
  "GET /v1/events": {
    tag: "Events",
    summary: "What happened to the organisation, newest first",
    description:
      "Kept for a year, at most 100,000 of them; `dropped` says what that has cost. `from` is included, `to` is not.",
    query: EVENTS,
    answers: { 200: record.events },
    errors: ["role_required"],
  },
  "GET /v1/webhooks": {
    tag: "Events",
    summary: "Where events are sent",
    answers: { 200: record.webhooks },
    errors: ["role_required"],
  },
  "POST /v1/webhooks": {
    tag: "Events",
    summary: "Send events to a URL; its secret is shown this once",
    body: newWebhookSchema,
    answers: { 201: record.freshWebhook },
    errors: [...CHANGE, "role_required", "too_many_webhooks"],
  },
  "GET /v1/webhooks/{id}": {
    tag: "Events",
    summary: "One webhook",
    answers: { 200: record.webhook },
    errors: [...MISSING, "role_required"],
  },
  "PATCH /v1/webhooks/{id}": {
    tag: "Events",
    summary: "Change a webhook, or switch it off and on",
    body: webhookChangeSchema,
    answers: { 200: record.webhook },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
  "DELETE /v1/webhooks/{id}": {
    tag: "Events",
    summary: "Send nothing more to it",
    answers: { 200: record.deleted },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
  "POST /v1/webhooks/{id}/rotate": {
    tag: "Events",
    summary: "A new secret; the one before signs as well until the overlap ends",
    body: webhookRotationSchema,
    answers: { 200: record.freshWebhook },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
  "POST /v1/webhooks/{id}/test": {
    tag: "Events",
    summary: "Send `webhook.test` now, and say what came of it",
    answers: { 200: record.webhookTest },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
  "GET /v1/webhooks/{id}/deliveries": {
    tag: "Events",
    summary: "What was sent and what waits, newest first",
    query: AFTER,
    answers: { 200: record.deliveries },
    errors: [...MISSING, "role_required"],
  },
  "POST /v1/webhooks/{id}/replay": {
    tag: "Events",
    summary: "Send again what happened since a time, 1,000 events a call",
    body: replaySchema,
    answers: { 202: record.replayed },
    errors: [...CHANGE, ...MISSING, "role_required", "webhook_disabled", "replay_in_progress"],
  },
  "GET /v1/keys": {
    tag: "Keys",
    summary: "Keys, newest first",
    answers: { 200: record.keys },
  },
  "POST /v1/keys": {
    tag: "Keys",
    summary: "Make a key for the calling member; it is shown this once",
    body: newKeySchema,
    answers: { 201: record.freshKey },
    errors: [...CHANGE, "too_many_keys", "idempotency_replay", "idempotency_mismatch"],
  },
  "PATCH /v1/keys/{id}": {
    tag: "Keys",
    summary: "Change a key: its name, its limits; what is new counts from this answer on",
    description:
      "Only to something tighter with a key of neither owner nor admin, and of an owner's key with any but an owner's.",
    body: keyChangeSchema,
    answers: { 200: record.key },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
  "GET /v1/key": {
    tag: "Keys",
    summary: "The calling key, what is left of each limit, and when it comes back",
    answers: { 200: record.ownKey },
  },
  "DELETE /v1/keys/{id}": {
    tag: "Keys",
    summary: "Revoke a key, everywhere, from this answer on",
    answers: { 200: record.revokedKey },
    errors: [...CHANGE, ...MISSING],
  },
  "POST /v1/sessions": {
    tag: "Sessions",
    summary:
      "A short-lived token of the calling key, for a browser, an agent's run or a child process",
    description:
      "It pays and looks within the key's limits and its own, and manages nothing. Nothing of it is stored before it is used; it dies with its key.",
    body: newSessionSchema,
    answers: { 201: record.freshSession },
    errors: [...CHANGE, "key_is_limited"],
  },
  "GET /v1/sessions": {
    tag: "Sessions",
    summary: "Sessions that were used and are alive, with their spend",
    query: AFTER,
    answers: { 200: record.sessions },
  },
  "DELETE /v1/sessions/{id}": {
    tag: "Sessions",
    summary: "End a session, everywhere, from this answer on",
    answers: { 200: record.endedSession },
    errors: [...CHANGE, ...MISSING, "too_many_sessions"],
  },
  "POST /v1/keys/{id}/rotate": {
    tag: "Keys",
    summary: "A new secret for a key; the others end after the overlap",
    description:
      "Needs an `Idempotency-Key`: a repeat within a day is the same secret. Id, name, limits and spend of the key stay. With an overlap of 0 every other secret is dead from this answer on, and with `end_sessions` all sessions that the key had, used or not. Only keys of the caller's own member, which a secret acts as; a key with limits itself alone.",
    body: rotationSchema,
    answers: { 201: record.rotatedKey },
    errors: [...CHANGE, ...MISSING, "key_is_limited", "too_many_secrets", "idempotency_mismatch"],
  },
  "GET /v1/users": {
    tag: "End users",
    summary: "End users with their spend of now, in the order of creation",
    query: PAGE_OR_AFTER,
    answers: { 200: record.endUsers },
  },
  "POST /v1/users": {
    tag: "End users",
    summary: "Make an end user, or change the one of this name",
    body: putBody,
    answers: { 200: record.endUser, 201: record.endUser },
    errors: [...CHANGE, "too_many_end_users"],
  },
  "GET /v1/users/{external_id}": {
    tag: "End users",
    summary: "One end user with its spend of now",
    answers: { 200: record.endUser },
    errors: MISSING,
  },
  "PATCH /v1/users/{external_id}": {
    tag: "End users",
    summary: "Change quotas, from the next request on",
    body: changeBody,
    answers: { 200: record.endUser },
    errors: [...CHANGE, ...MISSING],
  },
  "DELETE /v1/users/{external_id}": {
    tag: "End users",
    summary: "Forget an end user",
    answers: { 200: record.deletedEndUser },
    errors: [...CHANGE, ...MISSING],
  },
  "GET /v1/orgs/{org_id}": {
    tag: "Organisation",
    summary: "The organisation's name and slug",
    answers: { 200: record.organization },
    errors: MISSING,
  },
  "PATCH /v1/orgs/{org_id}": {
    tag: "Organisation",
    summary: "Change its name or slug",
    body: organizationChangeSchema,
    answers: { 200: record.organization },
    errors: [...CHANGE, ...MISSING, "role_required", "conflict"],
  },
  "GET /v1/orgs/{org_id}/settings": {
    tag: "Organisation",
    summary: "Defaults of new end users, and the low-balance line",
    answers: { 200: record.settings },
    errors: [...MISSING, "role_required"],
  },
  "PATCH /v1/orgs/{org_id}/settings": {
    tag: "Organisation",
    summary: "Change settings; what the body leaves out stays",
    body: settingsBody,
    answers: { 200: record.settings },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
};

/** Every operation below `/v1` and `/admin/v1` that answers JSON, from the tables of paths. */
export const OPERATIONS: readonly Operation[] = [
  ...operationsOf(PATHS, "", { ...PAID_OPERATIONS, ...ORGANIZATION_OPERATIONS }, rolesOf),
  ...operationsOf(OPERATOR_ENDPOINTS, "/admin/v1", OPERATOR_OPERATIONS, () => "operator"),
];

function rolesOf({ who: { roles, others } }: Path): string {
  if (others === undefined) return roles.join(", ");
  return others.length === 0 ? "everyone its own" : `${others.join(", ")}; everyone else its own`;
}
