import { chatBody } from "../../src/inference/chat-request.ts";
import { embeddingsBody } from "../../src/inference/embeddings-request.ts";
import { countBody, messagesBody } from "../../src/inference/doors/messages/request.ts";
import { completionsBody } from "../../src/inference/doors/completions/completions.ts";
import { responsesBody } from "../../src/inference/doors/responses/request.ts";
import { newKeySchema } from "../../src/keys/new-key.ts";
import { organizationChangeSchema } from "../../src/organizations/organization.ts";
import { changeBody, putBody, settingsBody } from "../../src/wallet/routes/end-users.route.ts";
import { MISSING, PAGE, USAGE } from "./operation.ts";
import type { Operation } from "./operation.ts";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import * as record from "./records.ts";

const ALL = "owner, admin, billing, member";
const SENIORS = "owner, admin, billing";

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

const PAID_OPERATIONS: readonly Operation[] = [
  {
    method: "post",
    path: "/v1/chat/completions",
    tag: "Inference",
    summary: "Chat, as JSON or as a stream",
    description:
      "As OpenAI's chat completions. `x-cost-micro` says what it cost; a stream says so in its last chunk when it asked for `stream_options.include_usage`.",
    roles: ALL,
    body: chatBody,
    answers: { 200: record.completion },
    errors: PAID,
  },
  {
    method: "post",
    path: "/v1/completions",
    tag: "Inference",
    summary: "Legacy text completions, as JSON or as a stream",
    roles: ALL,
    body: completionsBody,
    answers: { 200: record.textCompletion },
    errors: PAID,
  },
  {
    method: "post",
    path: "/v1/embeddings",
    tag: "Inference",
    summary: "Embeddings of texts or token arrays",
    roles: ALL,
    body: embeddingsBody,
    answers: { 200: record.embeddings },
    errors: PAID,
  },
  {
    method: "post",
    path: "/v1/responses",
    tag: "Inference",
    summary: "OpenAI's Responses, as JSON or as a stream",
    description:
      "As OpenAI's Responses, but that nothing is stored: send the whole input. Tools that run at a provider are left out and named in `x-dropped`. `usage.cost_micro` says what it cost.",
    roles: ALL,
    body: responsesBody,
    answers: { 200: record.response },
    errors: PAID,
  },
  {
    method: "post",
    path: "/v1/messages",
    tag: "Inference",
    summary: "Anthropic's Messages, as JSON or as a stream",
    description:
      "As Anthropic's API, with its errors' shape: `{ type: error, error: { type, message } }`. The key may come as `x-api-key`.",
    roles: ALL,
    body: messagesBody,
    answers: { 200: record.message },
    errors: PAID,
  },
  {
    method: "post",
    path: "/v1/messages/count_tokens",
    tag: "Inference",
    summary: "How many tokens a Messages request has; free",
    roles: ALL,
    body: countBody,
    answers: { 200: record.counted },
    errors: ["model_not_found"],
  },
];

const ORGANIZATION_OPERATIONS: readonly Operation[] = [
  {
    method: "get",
    path: "/v1/models",
    tag: "Models",
    summary: "What is live in this region, aliases included",
    roles: ALL,
    answers: { 200: record.listedModels },
  },
  {
    method: "get",
    path: "/v1/models/{id}",
    tag: "Models",
    summary: "One model; the slash in its id may be raw or encoded",
    roles: ALL,
    answers: { 200: record.listedModel },
    errors: ["model_not_found"],
  },
  {
    method: "get",
    path: "/v1/balance",
    tag: "Money",
    summary: "What the organisation has",
    roles: ALL,
    answers: { 200: record.balance },
  },
  {
    method: "get",
    path: "/v1/usage",
    tag: "Money",
    summary: "Spend by day, model, key or end user",
    description: "Days are UTC and both included; the last 30 unless said, at most 366.",
    roles: SENIORS,
    query: USAGE,
    answers: { 200: record.usage },
    errors: ["role_required"],
  },
  {
    method: "get",
    path: "/v1/generations/{id}",
    tag: "Money",
    summary: "The receipt of one paid request",
    roles: `${SENIORS}; a member those of its own keys`,
    answers: { 200: record.generation },
    errors: MISSING,
  },
  {
    method: "get",
    path: "/v1/alerts",
    tag: "Money",
    summary: "Quotas reached and balances that ran low, newest first",
    roles: SENIORS,
    query: PAGE,
    answers: { 200: record.alerts },
    errors: ["role_required"],
  },
  {
    method: "get",
    path: "/v1/keys",
    tag: "Keys",
    summary: "Keys, newest first",
    roles: `${SENIORS}; a member its own`,
    answers: { 200: record.keys },
  },
  {
    method: "post",
    path: "/v1/keys",
    tag: "Keys",
    summary: "Make a key for the calling member; it is shown this once",
    roles: ALL,
    body: newKeySchema,
    answers: { 201: record.freshKey },
    errors: [...CHANGE, "too_many_keys", "idempotency_replay", "idempotency_mismatch"],
  },
  {
    method: "delete",
    path: "/v1/keys/{id}",
    tag: "Keys",
    summary: "Revoke a key, everywhere, from this answer on",
    roles: `${SENIORS}; a member its own`,
    answers: { 200: record.revokedKey },
    errors: [...CHANGE, ...MISSING],
  },
  {
    method: "get",
    path: "/v1/users",
    tag: "End users",
    summary: "End users with their spend of now, in the order of creation",
    roles: ALL,
    query: PAGE,
    answers: { 200: record.endUsers },
  },
  {
    method: "post",
    path: "/v1/users",
    tag: "End users",
    summary: "Make an end user, or change the one of this name",
    roles: ALL,
    body: putBody,
    answers: { 200: record.endUser, 201: record.endUser },
    errors: [...CHANGE, "too_many_end_users"],
  },
  {
    method: "get",
    path: "/v1/users/{external_id}",
    tag: "End users",
    summary: "One end user with its spend of now",
    roles: ALL,
    answers: { 200: record.endUser },
    errors: MISSING,
  },
  {
    method: "patch",
    path: "/v1/users/{external_id}",
    tag: "End users",
    summary: "Change quotas, from the next request on",
    roles: ALL,
    body: changeBody,
    answers: { 200: record.endUser },
    errors: [...CHANGE, ...MISSING],
  },
  {
    method: "delete",
    path: "/v1/users/{external_id}",
    tag: "End users",
    summary: "Forget an end user",
    roles: ALL,
    answers: { 200: record.deletedEndUser },
    errors: [...CHANGE, ...MISSING],
  },
  {
    method: "get",
    path: "/v1/orgs/{org_id}",
    tag: "Organisation",
    summary: "The organisation's name and slug",
    roles: ALL,
    answers: { 200: record.organization },
    errors: MISSING,
  },
  {
    method: "patch",
    path: "/v1/orgs/{org_id}",
    tag: "Organisation",
    summary: "Change its name or slug",
    roles: "owner",
    body: organizationChangeSchema,
    answers: { 200: record.organization },
    errors: [...CHANGE, ...MISSING, "role_required", "conflict"],
  },
  {
    method: "get",
    path: "/v1/orgs/{org_id}/settings",
    tag: "Organisation",
    summary: "Defaults of new end users, and the low-balance line",
    roles: SENIORS,
    answers: { 200: record.settings },
    errors: [...MISSING, "role_required"],
  },
  {
    method: "patch",
    path: "/v1/orgs/{org_id}/settings",
    tag: "Organisation",
    summary: "Change settings; what the body leaves out stays",
    roles: SENIORS,
    body: settingsBody,
    answers: { 200: record.settings },
    errors: [...CHANGE, ...MISSING, "role_required"],
  },
];

/** Every operation below `/v1` and `/admin/v1` that answers JSON. */
export const OPERATIONS: readonly Operation[] = [
  ...PAID_OPERATIONS,
  ...ORGANIZATION_OPERATIONS,
  ...OPERATOR_OPERATIONS,
];
