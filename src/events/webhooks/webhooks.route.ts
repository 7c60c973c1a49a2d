import * as z from "zod/mini";
import type { AppContext } from "../../shared/http/context.ts";
import { created, readBodyFields, queryForCaller } from "../../shared/http/endpoint.ts";
import { actorOfCaller } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { WEBHOOK_EVENT_TYPES } from "../../shared/event.ts";
import type { Actor } from "../../shared/event.ts";
import { flattenResult, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { callObject } from "../../shared/reach-object.ts";
import { toStorageFailure } from "../../shared/storage-failure.ts";
import type {
  WebhookDeliveriesMethods,
  DeliveryAttempt,
} from "../../shared/contracts/deliveries.ts";
import {
  validateWebhookFormat,
  changeReceiverSettings,
  webhookReceiverSchema,
  encryptReceiverSettings,
  parseWebhookUrl,
} from "./receiver-settings.ts";
import type { ReceiverFields } from "./receiver-settings.ts";
import type { ReceiverSettings } from "./usage-formats.ts";
import { mintWebhookSecret, encryptWebhookSecret } from "./webhook-secrets.ts";
import type { EncryptedSecret } from "./webhook-secrets.ts";
import { webhookWithHealthView, testResultView, webhookView } from "./webhook-views.ts";
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  isActiveKey,
  listWebhooks,
  WEBHOOK_FORMATS,
  webhookNotFound,
  updateWebhook,
  invalidWebhookUrl,
} from "./webhooks.store.ts";
import type { WebhookChangeActor, Webhook, WebhookChange } from "./webhooks.store.ts";

const WEBHOOK_ID_PREFIX = "whk_";
const OVERLAP_DAY_S = 86_400;
const OVERLAP_MAX_S = 7 * OVERLAP_DAY_S;
const ROUNDS_MAX = 5;

const types = z.nullable(
  z
    .array(z.enum(WEBHOOK_EVENT_TYPES))
    .check(z.minLength(1), z.maxLength(WEBHOOK_EVENT_TYPES.length)),
);
const format = z.nullable(z.enum(WEBHOOK_FORMATS));
export const newWebhookSchema = z.object({
  url: z.string(),
  types: z.optional(types),
  format: z.optional(format),
  receiver: z.optional(webhookReceiverSchema),
});
export const webhookChangeSchema = z.object({
  url: z.optional(z.string()),
  types: z.optional(types),
  format: z.optional(format),
  receiver: z.optional(webhookReceiverSchema),
  enabled: z.optional(z.boolean()),
});
export const webhookRotationSchema = z.object({
  overlap_seconds: z.optional(z.int().check(z.minimum(0), z.maximum(OVERLAP_MAX_S))),
});
const READ_ONLY_FIELDS = ["id", "disabled_reason", "previous_secret_until", "created_at"];
export async function listWebhooksRoute(c: AppContext) {
  const { orgId } = c.var.admitted.caller;
  const rows = await queryWebhooks(c, () => listWebhooks(c.env.DB, orgId));
  if (!rows.ok) return rows;
  const health = await readHealth(c);
  return success({
    webhooks: rows.value.map((row) => webhookWithHealthView(row, health, now(c.env))),
  });
}

/** Handles POST /v1/webhooks. Only this response contains the webhook's secret. */
export async function createWebhookRoute(c: AppContext) {
  const fields = await readBodyFields(c, newWebhookSchema, [...READ_ONLY_FIELDS, "enabled"]);
  if (!fields.ok) return fields;
  const { config, admitted } = c.var;
  const url = parseWebhookUrl(fields.value.url, config.sandbox);
  if (typeof url === "string") return invalidWebhookUrl(url);
  const by = changeActor(c);
  const id = mintId(WEBHOOK_ID_PREFIX, by.now);
  const newSecret = await createSecret(c, id);
  if (!newSecret.ok) return newSecret;
  const sealed = await encryptReceiver(c, id, fields.value.receiver);
  if (!sealed.ok) return sealed;
  const webhook: Webhook = {
    id,
    orgId: admitted.caller.orgId,
    url: url.href,
    types: removeDuplicates(fields.value.types) ?? null,
    secrets: [newSecret.value.stored],
    format: fields.value.format ?? null,
    receiver: sealed.value ?? null,
    disabledReason: null,
    createdAt: by.now,
    changedAt: by.now,
  };
  const formatCheck = validateWebhookFormat(webhook);
  if (!formatCheck.ok) return formatCheck;
  const inserted = flattenResult(
    await queryWebhooks(c, () => insertWebhook(c.env.DB, webhook, by)),
  );
  if (!inserted.ok) return inserted;
  // A failed refresh is ignored, because only this response has the webhook's secret.
  await callDeliveries(c, (deliveries) => deliveries.refresh(webhook.orgId));
  return created({ ...webhookView(inserted.value, by.now), secret: newSecret.value.secret });
}

export async function readWebhookRoute(c: AppContext) {
  const found = await findWebhookOfPath(c);
  if (!found.ok) return found;
  return success(webhookWithHealthView(found.value, await readHealth(c), now(c.env)));
}

export async function patchWebhookRoute(c: AppContext) {
  const fields = await readBodyFields(c, webhookChangeSchema, READ_ONLY_FIELDS);
  if (!fields.ok) return fields;
  const { url: newUrl, enabled, format: requested } = fields.value;
  const wanted = removeDuplicates(fields.value.types);
  const url = newUrl === undefined ? null : parseWebhookUrl(newUrl, c.var.config.sandbox);
  if (typeof url === "string") return invalidWebhookUrl(url);
  const sealed = await encryptReceiver(c, c.req.param("id") ?? "", fields.value.receiver);
  if (!sealed.ok) return sealed;
  const changed = await changeWebhook(c, false, (before) => {
    const shape = {
      url: url?.href ?? before.url,
      format: requested === undefined ? before.format : requested,
    };
    const receiver = changeReceiverSettings(before, shape, sealed.value);
    if (!receiver.ok) return receiver;
    return validateWebhookFormat({
      ...shape,
      types: wanted === undefined ? before.types : wanted,
      secrets: before.secrets,
      receiver: receiver.value,
      disabledReason: disabledReasonAfter(before.disabledReason, enabled),
    });
  });
  return changed.ok ? success(webhookView(changed.value, now(c.env))) : changed;
}

/**
 * Handles POST /v1/webhooks/{id}/rotate. Until the overlap ends, the old secret also signs
 * messages.
 */
export async function rotateWebhookRoute(c: AppContext) {
  const fields = await readBodyFields(c, webhookRotationSchema, []);
  if (!fields.ok) return fields;
  const newSecret = await createSecret(c, c.req.param("id") ?? "");
  if (!newSecret.ok) return newSecret;
  const until = now(c.env) + (fields.value.overlap_seconds ?? OVERLAP_DAY_S) * 1000;
  const changed = await changeWebhook(c, true, (before) => {
    const old = before.secrets.slice(0, 1).map(({ sealed }) => ({ sealed, until }));
    return success({ ...before, secrets: [newSecret.value.stored, ...old] });
  });
  if (!changed.ok) return changed;
  return success({ ...webhookView(changed.value, now(c.env)), secret: newSecret.value.secret });
}

/** Handles DELETE /v1/webhooks/{id}. Only a message in progress can still be sent. */
export async function deleteWebhookRoute(c: AppContext) {
  const found = await findWebhookOfPath(c);
  if (!found.ok) return found;
  const { id, orgId } = found.value;
  const deletion = await queryWebhooks(c, () =>
    deleteWebhook(c.env.DB, found.value, changeActor(c)),
  );
  if (!deletion.ok) return deletion;
  if (!deletion.value) return webhookNotFound();
  const refresh = await callDeliveries(c, (deliveries) => deliveries.refresh(orgId));
  return refresh.ok ? success({ id, deleted: true }) : refresh;
}

export async function testWebhookRoute(c: AppContext) {
  const { caller } = c.var.admitted;
  const { orgId } = caller;
  const actor = actorOfCaller(caller);
  const test = { orgId, id: c.req.param("id") ?? "", actor };
  const answer = await sendTest(objectsOf(c.env).deliveries(orgId), test);
  return answer.ok ? success(testResultView(answer.value)) : answer;
}

async function sendTest(
  deliveries: WebhookDeliveriesMethods,
  { orgId, id, actor }: { readonly orgId: string; readonly id: string; readonly actor: Actor },
): Promise<Result<DeliveryAttempt>> {
  try {
    return await deliveries.sendTest(orgId, id, actor);
  } catch (error) {
    logWarning("webhook_test_unsent", { webhook_id: id, reason: errorMessageOf(error) });
    return refuse(toStorageFailure(error));
  }
}

function removeDuplicates<T, N extends null | undefined>(list: readonly T[] | N): readonly T[] | N {
  return list && [...new Set(list)];
}

async function encryptReceiver(
  c: AppContext,
  webhookId: string,
  fields: ReceiverFields | undefined,
): Promise<Result<ReceiverSettings | null | undefined>> {
  const [by] = c.var.config.keySecrets;
  if (by === undefined) return refuse({ kind: "misconfigured" });
  if (fields === undefined || fields === null) return success(fields);
  return success(await encryptReceiverSettings(fields, webhookId, { by, nowMs: now(c.env) }));
}

function disabledReasonAfter(before: string | null, enabled: boolean | undefined): string | null {
  if (enabled === undefined) return before;
  return enabled ? null : (before ?? "by_request");
}

function changeActor(c: AppContext): WebhookChangeActor {
  const { caller } = c.var.admitted;
  return { keyId: caller.keyId, actor: actorOfCaller(caller), now: now(c.env) };
}

function queryWebhooks<T>(c: AppContext, statement: () => Promise<T>): Promise<Result<T>> {
  return queryForCaller(c, "webhooks_unreadable", statement);
}

export async function findWebhookOfPath(c: AppContext): Promise<Result<Webhook>> {
  const { orgId } = c.var.admitted.caller;
  const id = c.req.param("id") ?? "";
  const found = await queryWebhooks(c, () => findWebhook(c.env.DB, { id, orgId }));
  if (!found.ok) return found;
  return found.value === null ? webhookNotFound() : success(found.value);
}

async function changeWebhook(
  c: AppContext,
  rotated: boolean,
  applyChange: (before: Webhook) => Result<WebhookChange>,
): Promise<Result<Webhook>> {
  const by = { ...changeActor(c), rotated };
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const found = await findWebhookOfPath(c);
    if (!found.ok) return found;
    const before = found.value;
    const newValues = applyChange(before);
    if (!newValues.ok) return newValues;
    const updated = await queryWebhooks(c, () =>
      updateWebhook(c.env.DB, before, newValues.value, by),
    );
    if (!updated.ok) return updated;
    if (updated.value === null) {
      const keyCheck = await queryWebhooks(c, () => isActiveKey(c.env.DB, by.keyId));
      if (!keyCheck.ok) return keyCheck;
      if (!keyCheck.value) return refuse({ kind: "invalid_api_key" });
      continue;
    }
    const refresh = await callDeliveries(c, (deliveries) => deliveries.refresh(before.orgId));
    return refresh.ok ? success(updated.value) : refresh;
  }
  return refuse({ kind: "overloaded" });
}

/** Calls the organization's deliveries object with retries, so `call` must be safe to repeat. */
export function callDeliveries<T>(
  c: AppContext,
  call: (deliveries: WebhookDeliveriesMethods) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { orgId } = c.var.admitted.caller;
  return callObject(() => call(objectsOf(c.env).deliveries(orgId)));
}

function readHealth(c: AppContext): ReturnType<WebhookDeliveriesMethods["health"]> {
  const { orgId } = c.var.admitted.caller;
  return callObject(() => objectsOf(c.env).deliveries(orgId).health(), { attemptsMax: 1 });
}

type NewSecret = { readonly secret: string; readonly stored: EncryptedSecret };

async function createSecret(c: AppContext, webhookId: string): Promise<Result<NewSecret>> {
  const [first] = c.var.config.keySecrets;
  if (first === undefined) return refuse({ kind: "misconfigured" });
  const secret = mintWebhookSecret();
  const stored = { sealed: await encryptWebhookSecret(secret, webhookId, first), until: null };
  return success({ secret, stored });
}
