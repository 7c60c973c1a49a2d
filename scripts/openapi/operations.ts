import { chatBody, embeddingsBody } from "../../src/core/core-request.ts";
import { countBody, messagesBody } from "../../src/wires/messages/client-request.ts";
import { completionsBody } from "../../src/doors/completions.ts";
import { responsesBody } from "../../src/wires/responses/client-request.ts";
import { messagesListQuery } from "../../src/catalog/messages-list.ts";
import { pageQuery } from "../../src/http/parse-body.ts";
import { keysParameters } from "../../src/keys/keys.route.ts";
import { keyChangeSchema, newKeySchema } from "../../src/keys/new-key.ts";
import { OPERATOR_ENDPOINTS } from "../../src/operator/endpoints.ts";
import { inputItemsQuery } from "../../src/kept/kept.route.ts";
import { newSessionSchema, sessionsParameters } from "../../src/keys/sessions.route.ts";
import { rotationSchema } from "../../src/keys/rotation.ts";
import { organizationChangeSchema } from "../../src/organizations/organization.ts";
import { PATHS } from "../../src/paths.ts";
import { WEBHOOK_OPERATIONS } from "./webhook-operations.ts";
import {
  changeBody,
  endUsersQuery,
  putBody,
  settingsBody,
} from "../../src/wallet/routes/end-users.route.ts";
import { errorsQuery } from "../../src/wallet/routes/errors.route.ts";
import { generationsQuery, holdsQuery } from "../../src/wallet/routes/generations.route.ts";
import { eventsParameters } from "../../src/wallet/routes/reads.route.ts";
import { usageParameters } from "../../src/wallet/routes/usage.route.ts";
import { BETA, END_USER, idempotencyKey, LIST_VERSION, VERSION } from "./headers.ts";
import { operationsOf } from "./operation.ts";
import type { Description, Operation } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import { PAYMENT_OPERATIONS } from "./payment-operations.ts";
import { PEOPLE_OPERATIONS } from "./people-operations.ts";
import { PAID } from "./failures.ts";
import * as keyed from "./key-records.ts";
import * as record from "./records.ts";
import { queryOf } from "./schemas.ts";
import { operatorStanding, standingOf } from "./standing.ts";
import * as stream from "./streams.ts";
import * as spent from "./usage-records.ts";

const PAID_HEADERS = [idempotencyKey(false), END_USER] as const;

const PAID_OPERATIONS: Readonly<Record<string, Description>> = {
  "POST /v1/chat/completions": {
    tag: "Inference",
    summary: "Chat, as JSON or as a stream",
    description:
      "As OpenAI's chat completions. `x-cost-micro` says what it cost; a stream says so in its last chunk when it asked for `stream_options.include_usage`.",
    body: chatBody,
    answers: { 200: record.completion },
    events: stream.chatChunk,
    headers: PAID_HEADERS,
    errors: PAID,
  },
  "POST /v1/completions": {
    tag: "Inference",
    summary: "Legacy text completions, as JSON or as a stream",
    body: completionsBody,
    answers: { 200: record.textCompletion },
    events: stream.textChunk,
    headers: PAID_HEADERS,
    errors: PAID,
  },
  "POST /v1/embeddings": {
    tag: "Inference",
    summary: "Embeddings of texts or token arrays",
    body: embeddingsBody,
    answers: { 200: record.embeddings },
    headers: PAID_HEADERS,
    errors: PAID,
  },
  "POST /v1/responses": {
    tag: "Inference",
    summary: "OpenAI's Responses, as JSON or as a stream",
    description:
      "As OpenAI's Responses. Answers are kept, so that `previous_response_id` and `item_reference` continue them, for as long as the organisation's setting `keep_responses_hours` says; at first nothing is kept, and the whole input is to be sent. Tools that run at a provider are left out and named in `x-dropped`. `usage.cost_micro` says what it cost.",
    body: responsesBody,
    answers: { 200: record.response },
    events: stream.responseEvent,
    headers: PAID_HEADERS,
    errors: [...PAID, "previous_response_not_found"],
  },
  "POST /v1/messages": {
    tag: "Inference",
    summary: "Anthropic's Messages, as JSON or as a stream",
    description:
      "As Anthropic's API, with its errors' shape: `{ type: error, error: { type, message } }`. The key may come as `x-api-key`.",
    body: messagesBody,
    answers: { 200: record.message },
    events: stream.messageEvent,
    headers: [...PAID_HEADERS, VERSION, BETA],
    errors: PAID,
  },
  "POST /v1/messages/count_tokens": {
    tag: "Inference",
    summary: "How many tokens a Messages request has; free",
    headers: [VERSION, BETA],
    body: countBody,
    answers: { 200: record.counted },
    errors: ["model_not_found"],
  },
};

const OTHERS: Readonly<Record<string, Description>> = {
  ...PAYMENT_OPERATIONS,
  "GET /v1/responses/{id}": {
    tag: "Inference",
    summary: "A response that is kept, as it was given",
    description:
      "With `include=reasoning.encrypted_content` also what its request did not ask to see of the model's reasoning. It cannot be streamed again.",
    query: [{ name: "include", schema: { type: "string" } }],
    answers: { 200: record.response },
  },
  "DELETE /v1/responses/{id}": {
    tag: "Inference",
    summary: "Forget a response that is kept",
    description: "A conversation that went on from it cannot be continued any more.",
    answers: { 200: record.deletedResponse },
  },
  "GET /v1/responses/{id}/input_items": {
    tag: "Inference",
    summary: "The conversation that a kept response answered, item by item",
    description:
      "All of it, also what came by `previous_response_id`; newest first unless asked otherwise.",
    query: queryOf(inputItemsQuery),
    answers: { 200: record.inputItems },
  },
  "GET /v1/models": {
    tag: "Models",
    summary: "What is live in this region, aliases included",
    description:
      "`limit`, `after_id` and `before_id` are of Anthropic's list alone, which is in pages; OpenAI's is whole.",
    query: queryOf(messagesListQuery),
    headers: [LIST_VERSION],
    answers: { 200: record.listedModels },
  },
  "GET /v1/models/{id}": {
    tag: "Models",
    summary: "One model; the slash in its id may be raw or encoded",
    headers: [LIST_VERSION],
    answers: { 200: record.listedModel },
    errors: ["model_not_allowed", "model_not_found"],
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
    query: queryOf(usageParameters),
    answers: { 200: spent.usage },
  },
  "GET /v1/holds": {
    tag: "Money",
    summary: "Requests under way, and what each holds of the balance",
    query: queryOf(holdsQuery),
    answers: { 200: spent.holds },
  },
  "GET /v1/generations": {
    tag: "Money",
    summary: "Requests, newest first",
    description:
      "Every request to a paid path while it is kept, also those that are running, failed or were refused: what only a settled one has is null there. Of those that failed or were refused the newest 100 of a key are kept by themselves, and what was before is counted in `GET /v1/errors`. `status=error` stands for `voided,expired,refused`; `model`, `provider`, `key_id`, `status` and `code` take several values by comma. A page may be shorter than `limit`: while there is `next_after`, older ones may follow.",
    query: queryOf(generationsQuery),
    answers: { 200: spent.generations },
  },
  "GET /v1/generations/{id}": {
    tag: "Money",
    summary: "What happened to one request",
    description:
      "By the request's id, which is that of every error too, or by the id of its answer, whatever became of it: as the list has it. What failed may take a few seconds to be found.",
    answers: { 200: spent.generation },
  },
  "GET /v1/errors": {
    tag: "Money",
    summary: "How many requests failed or were refused, and by what",
    description:
      "Counted by hour, key and code; all of them, also those that are no longer kept by themselves.",
    query: queryOf(errorsQuery),
    answers: { 200: spent.errors },
  },
  "GET /v1/alerts": {
    tag: "Money",
    summary: "Quotas reached and balances that ran low, newest first",
    query: queryOf(pageQuery),
    answers: { 200: record.alerts },
  },
  "GET /v1/events": {
    tag: "Events",
    summary: "What happened to the organisation, newest first",
    description:
      "Kept for a year, at most 100,000 of them; `dropped` says what that has cost. `from` is included, `to` is not.",
    query: queryOf(eventsParameters),
    answers: { 200: record.events },
  },
  ...WEBHOOK_OPERATIONS,
  "GET /v1/keys": {
    tag: "Keys",
    summary: "Keys, newest first",
    query: queryOf(keysParameters),
    answers: { 200: keyed.keys },
  },
  "POST /v1/keys": {
    tag: "Keys",
    summary: "Make a key for the calling member; it is shown this once",
    body: newKeySchema,
    answers: { 201: keyed.freshKey },
    headers: [idempotencyKey(false)],
    errors: ["too_many_keys", "idempotency_replay", "idempotency_mismatch"],
  },
  "PATCH /v1/keys/{id}": {
    tag: "Keys",
    summary: "Change a key: its name, its limits; what is new counts from this answer on",
    description:
      "Only to something tighter with a key of neither owner nor admin, and of an owner's key with any but an owner's.",
    body: keyChangeSchema,
    answers: { 200: keyed.key },
    errors: ["role_required"],
  },
  "GET /v1/key": {
    tag: "Keys",
    summary: "The calling key, what is left of each limit, and when it comes back",
    answers: { 200: keyed.ownKey },
  },
  "DELETE /v1/keys/{id}": {
    tag: "Keys",
    summary: "Revoke a key, everywhere, from this answer on",
    answers: { 200: keyed.revokedKey },
  },
  "POST /v1/sessions": {
    tag: "Sessions",
    summary:
      "A short-lived token of the calling key, for a browser, an agent's run or a child process",
    description:
      "It pays and looks within the key's limits and its own, and manages nothing. Nothing of it is stored before it is used; it dies with its key.",
    body: newSessionSchema,
    answers: { 201: keyed.freshSession },
    errors: ["key_is_limited"],
  },
  "GET /v1/sessions": {
    tag: "Sessions",
    summary: "Sessions that were used and are alive, with their spend",
    query: queryOf(sessionsParameters),
    answers: { 200: keyed.sessions },
    errors: ["key_is_limited"],
  },
  "DELETE /v1/sessions/{id}": {
    tag: "Sessions",
    summary: "End a session, everywhere, from this answer on",
    answers: { 200: keyed.endedSession },
    errors: ["key_is_limited", "too_many_sessions"],
  },
  "POST /v1/keys/{id}/rotate": {
    tag: "Keys",
    summary: "A new secret for a key; the others end after the overlap",
    description:
      "Needs an `Idempotency-Key`: a repeat within a day is the same secret. Id, name, limits and spend of the key stay. With an overlap of 0 every other secret is dead from this answer on, and with `end_sessions` all sessions that the key had, used or not. Only keys of the caller's own member, which a secret acts as; a key with limits itself alone.",
    body: rotationSchema,
    answers: { 201: keyed.rotatedKey },
    headers: [idempotencyKey(true)],
    errors: ["key_is_limited", "too_many_secrets", "idempotency_mismatch"],
  },
  "GET /v1/users": {
    tag: "End users",
    summary: "End users with their spend of now, in the order of creation",
    query: queryOf(endUsersQuery),
    answers: { 200: record.endUsers },
  },
  "POST /v1/users": {
    tag: "End users",
    summary: "Make an end user, or change the one of this name",
    body: putBody,
    answers: { 200: record.endUser, 201: record.endUser },
    errors: ["too_many_end_users"],
  },
  "GET /v1/users/{external_id}": {
    tag: "End users",
    summary: "One end user with its spend of now",
    answers: { 200: record.endUser },
  },
  "PATCH /v1/users/{external_id}": {
    tag: "End users",
    summary: "Change quotas, from the next request on",
    body: changeBody,
    answers: { 200: record.endUser },
  },
  "DELETE /v1/users/{external_id}": {
    tag: "End users",
    summary: "Forget an end user",
    answers: { 200: record.deletedEndUser },
  },
  "GET /v1/orgs/{org_id}": {
    tag: "Organisation",
    summary: "The organisation's name and slug",
    answers: { 200: record.organization },
  },
  "PATCH /v1/orgs/{org_id}": {
    tag: "Organisation",
    summary: "Change its name or slug",
    body: organizationChangeSchema,
    answers: { 200: record.organization },
    errors: ["conflict"],
  },
  "GET /v1/orgs/{org_id}/settings": {
    tag: "Organisation",
    summary: "Defaults of new end users, and the low-balance line",
    answers: { 200: record.settings },
  },
  "PATCH /v1/orgs/{org_id}/settings": {
    tag: "Organisation",
    summary: "Change settings; what the body leaves out stays",
    body: settingsBody,
    answers: { 200: record.settings },
    errors: ["payments_off"],
  },
};

/** Every operation below `/v1`, `/admin/v1` and of persons that answers JSON, from the tables of paths. */
export const OPERATIONS: readonly Operation[] = [
  ...operationsOf(PATHS, "", { ...PAID_OPERATIONS, ...OTHERS }, standingOf),
  ...operationsOf(OPERATOR_ENDPOINTS, "/admin/v1", OPERATOR_OPERATIONS, operatorStanding),
  ...PEOPLE_OPERATIONS,
];
