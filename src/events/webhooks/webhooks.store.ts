import type { KeySecret } from "../../shared/config/config.ts";
import { findFieldChanges } from "../../shared/event.ts";
import type { ChangeContext, EventData, EventType, WebhookEventType } from "../../shared/event.ts";
import { insertEventIfChanged } from "../../shared/events.store.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { logAlert } from "../../shared/log.ts";
import { receiverView } from "./receiver-settings.ts";
import type { ReceiverSettings } from "./usage-formats.ts";
import { USAGE_FORMAT_NAMES } from "./usage-formats.ts";
import { reencryptWebhookSecret } from "./webhook-secrets.ts";
import type { EncryptedSecret } from "./webhook-secrets.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";

const WEBHOOKS_MAX = 5;

export const WEBHOOK_FORMATS = ["slack", ...USAGE_FORMAT_NAMES] as const;
type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

/** A row of `webhooks`. A null `types` means all event types. Times are Unix ms. */
export type Webhook = {
  readonly id: string;
  readonly orgId: string;
  readonly url: string;
  readonly types: readonly WebhookEventType[] | null;
  readonly secrets: readonly EncryptedSecret[];
  /** The format. Absent in copies from an earlier release. */
  readonly format: WebhookFormat | null;
  /** Set if `format` is a usage format. Absent (like null) in copies from an earlier release. */
  readonly receiver?: ReceiverSettings | null;
  readonly disabledReason: string | null;
  readonly createdAt: number;
  readonly changedAt: number;
};

type StoredWebhook = Omit<Webhook, "types" | "secrets" | "receiver"> & {
  readonly types: string | null;
  readonly secrets: string;
  readonly receiver: string | null;
};

const WEBHOOK_COLUMNS = `id, org_id AS orgId, url, types, secrets, format, receiver,
  disabled_reason AS disabledReason, created_at AS createdAt, changed_at AS changedAt`;

export async function listWebhooks(db: D1Database, orgId: string): Promise<readonly Webhook[]> {
  const { results } = await db
    .prepare(`SELECT ${WEBHOOK_COLUMNS} FROM webhooks WHERE org_id = ? ORDER BY created_at, id`)
    .bind(orgId)
    .all<StoredWebhook>();
  return results.map(webhookFromRow);
}

export async function findWebhook(
  db: D1Database,
  { id, orgId }: Pick<Webhook, "id" | "orgId">,
): Promise<Webhook | null> {
  const row = await db
    .prepare(`SELECT ${WEBHOOK_COLUMNS} FROM webhooks WHERE id = ? AND org_id = ?`)
    .bind(id, orgId)
    .first<StoredWebhook>();
  return row === null ? null : webhookFromRow(row);
}

const KEY_IS_ACTIVE_SQL = "EXISTS (SELECT 1 FROM keys WHERE id = ?1 AND revoked_at IS NULL)";

/** The caller of a change, with an active key. */
export type WebhookChangeActor = ChangeContext & {
  readonly keyId: string;
};

/**
 * Inserts a webhook. Fails with `conflict` for too many webhooks, or `invalid_api_key` if the key
 * was revoked.
 */
export async function insertWebhook(
  db: D1Database,
  webhook: Webhook,
  by: WebhookChangeActor,
): Promise<Result<Webhook>> {
  const { id, orgId, url, types } = webhook;
  const [inserted] = await db.batch<StoredWebhook>([
    db
      .prepare(
        `INSERT INTO webhooks (id, org_id, url, types, secrets, created_at, changed_at, format, receiver)
         SELECT ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9 WHERE ${KEY_IS_ACTIVE_SQL}
           AND (SELECT count(*) FROM webhooks WHERE org_id = ?3) < ${WEBHOOKS_MAX} RETURNING ${WEBHOOK_COLUMNS}`,
      )
      .bind(
        by.keyId,
        id,
        orgId,
        url,
        types === null ? null : JSON.stringify(types),
        JSON.stringify(webhook.secrets),
        webhook.createdAt,
        webhook.format,
        receiverText(webhook),
      ),
    changeEvent(db, webhook, { type: "webhook.created", data: { host: hostOf(url), types }, by }),
  ]);
  const row = inserted?.results[0];
  if (row !== undefined) return success(webhookFromRow(row));
  if (!(await isActiveKey(db, by.keyId))) return refuse({ kind: "invalid_api_key" });
  const message = `An organization can have at most ${WEBHOOKS_MAX} webhooks.`;
  return refuse({ kind: "conflict", message, param: null, code: "too_many_webhooks" });
}

export type WebhookChange = Pick<
  Webhook,
  "url" | "types" | "secrets" | "disabledReason" | "format" | "receiver"
>;

/**
 * Updates a webhook. Returns null if it no longer equals `before`. A change without effect records
 * no event.
 */
export async function updateWebhook(
  db: D1Database,
  before: Webhook,
  change: WebhookChange,
  by: WebhookChangeActor & { readonly rotated: boolean },
): Promise<Webhook | null> {
  const changedAt = Math.max(by.now, before.changedAt + 1);
  const data = by.rotated
    ? { previous_until: change.secrets[1]?.until ?? null }
    : recordedChanges(before, change);
  const type = by.rotated ? "webhook.rotated" : "webhook.changed";
  const [updated] = await db.batch<StoredWebhook>([
    db
      .prepare(
        `UPDATE webhooks SET url = ?4, types = ?5, secrets = ?6, disabled_reason = ?7, changed_at = ?8, format = ?10, receiver = ?11
         WHERE id = ?2 AND org_id = ?3 AND changed_at = ?9 AND ${KEY_IS_ACTIVE_SQL} RETURNING ${WEBHOOK_COLUMNS}`,
      )
      .bind(
        by.keyId,
        before.id,
        before.orgId,
        change.url,
        change.types === null ? null : JSON.stringify(change.types),
        JSON.stringify(change.secrets),
        change.disabledReason,
        changedAt,
        before.changedAt,
        change.format,
        receiverText(change),
      ),
    ...(data === null ? [] : [changeEvent(db, before, { type, data, by })]),
  ]);
  const row = updated?.results[0];
  return row === undefined ? null : webhookFromRow(row);
}

function recordedChanges(before: Webhook, change: WebhookChange): EventData | null {
  const plain = ({ types, disabledReason, format, receiver }: WebhookChange) => ({
    types,
    format,
    receiver: receiverView(receiver),
    enabled: disabledReason === null,
  });
  const other = findFieldChanges(plain(before), plain(change));
  if (change.url === before.url) return other;
  const host = { from: hostOf(before.url), to: hostOf(change.url) };
  return { changes: { host, ...other?.changes } };
}

function receiverText({ receiver = null }: Pick<Webhook, "receiver">): string | null {
  return receiver === null ? null : JSON.stringify(receiver);
}

/** Returns only a URL's host, because its path and query can contain secrets. */
function hostOf(url: string): string {
  return new URL(url).host;
}

export async function deleteWebhook(
  db: D1Database,
  webhook: Webhook,
  by: WebhookChangeActor,
): Promise<boolean> {
  const [deleted] = await db.batch([
    db
      .prepare(
        `DELETE FROM webhooks WHERE id = ?2 AND org_id = ?3 AND ${KEY_IS_ACTIVE_SQL} RETURNING id`,
      )
      .bind(by.keyId, webhook.id, webhook.orgId),
    changeEvent(db, webhook, { type: "webhook.deleted", data: { host: hostOf(webhook.url) }, by }),
  ]);
  return (deleted?.results.length ?? 0) > 0;
}

const REENCRYPTED_MAX = 500;

/**
 * Re-encrypts secrets with the first of KEY_SECRETS. Skips webhooks that change meanwhile. A
 * webhook whose secret can't be decrypted sends nothing until the secret is rotated.
 */
export async function reencryptWebhookSecrets(
  db: D1Database,
  keySecrets: readonly KeySecret[],
): Promise<void> {
  const { results } = await db
    .prepare(
      `SELECT id, org_id AS orgId, secrets, receiver FROM webhooks WHERE EXISTS (SELECT 1 FROM json_each(secrets)
         WHERE instr(value ->> 'sealed', ?1 || '.') <> 1) OR instr(receiver ->> 'sealed', ?1 || '.') <> 1
       ORDER BY changed_at DESC LIMIT ${REENCRYPTED_MAX}`,
    )
    .bind(keySecrets[0]?.id ?? "")
    .all<StoredSecrets>();
  for (const row of results) {
    const resealed = await reencryptRow(row, keySecrets);
    if (resealed.secrets === row.secrets && resealed.receiver === row.receiver) continue;
    await db
      .prepare(
        "UPDATE webhooks SET secrets = ?3, receiver = ?5 WHERE id = ?1 AND secrets = ?2 AND receiver IS ?4",
      )
      .bind(row.id, row.secrets, resealed.secrets, row.receiver, resealed.receiver)
      .run();
  }
}

type StoredSecrets = Pick<StoredWebhook, "id" | "orgId" | "secrets" | "receiver">;

async function reencryptRow(
  { id, orgId, secrets, receiver }: StoredSecrets,
  keySecrets: readonly KeySecret[],
): Promise<Pick<StoredWebhook, "secrets" | "receiver">> {
  const signingSecrets = parseStoredJson<EncryptedSecret[]>(secrets);
  const settings = receiver === null ? null : parseStoredJson<ReceiverSettings>(receiver);
  const { sealed } = settings ?? {};
  const old = sealed === undefined ? signingSecrets : [...signingSecrets, { sealed, until: null }];
  const reencrypted = await Promise.all(
    old.map((one) => reencryptWebhookSecret(one, id, keySecrets)),
  );
  const credential = reencrypted[signingSecrets.length];
  if (reencrypted[0] === null || credential === null) {
    logAlert("webhook_secret_unreadable", { org_id: orgId, webhook_id: id });
  }
  const resealed = reencrypted
    .slice(0, signingSecrets.length)
    .map((one, i) => one ?? signingSecrets[i]);
  return {
    secrets: JSON.stringify(resealed),
    receiver: credential ? JSON.stringify({ ...settings, sealed: credential.sealed }) : receiver,
  };
}

/** Disables a webhook and records an event, unless the webhook has changed. */
export async function disableWebhook(
  db: D1Database,
  webhook: Pick<Webhook, "id" | "orgId" | "changedAt">,
  disabling: { readonly reason: string; readonly nowMs: number },
): Promise<void> {
  const { id, orgId, changedAt } = webhook;
  await db.batch([
    db
      .prepare(
        `UPDATE webhooks SET disabled_reason = ?3, changed_at = max(?4, changed_at + 1)
         WHERE id = ?1 AND org_id = ?2 AND disabled_reason IS NULL AND changed_at = ?5`,
      )
      .bind(id, orgId, disabling.reason, disabling.nowMs, changedAt),
    insertEventIfChanged(db, {
      orgId,
      type: "webhook.disabled",
      actor: { kind: "system", id: null },
      subject: id,
      data: { reason: disabling.reason },
      createdAt: disabling.nowMs,
    }),
  ]);
}

export function webhookNotFound(): Refusal {
  return refuse({ kind: "not_found", message: "No such webhook." });
}

export function invalidWebhookUrl(problem: string): Refusal {
  return invalid(`url ${problem}.`, "url");
}

export async function isActiveKey(db: D1Database, keyId: string): Promise<boolean> {
  const found = await db
    .prepare("SELECT 1 FROM keys WHERE id = ? AND revoked_at IS NULL")
    .bind(keyId)
    .first();
  return found !== null;
}

function changeEvent(
  db: D1Database,
  { id, orgId }: Pick<Webhook, "id" | "orgId">,
  event: { readonly type: EventType; readonly data: EventData; readonly by: WebhookChangeActor },
): D1PreparedStatement {
  const { type, data, by } = event;
  const { actor, now: createdAt } = by;
  return insertEventIfChanged(db, { orgId, type, actor, subject: id, data, createdAt });
}

function webhookFromRow(row: StoredWebhook): Webhook {
  const { types, secrets, receiver } = row;
  return {
    ...row,
    types: types === null ? null : parseStoredJson<WebhookEventType[]>(types),
    secrets: parseStoredJson<EncryptedSecret[]>(secrets),
    receiver: receiver === null ? null : parseStoredJson<ReceiverSettings>(receiver),
  };
}
