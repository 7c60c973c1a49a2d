import { DurableObject } from "cloudflare:workers";
import { configOf, numberVar } from "../../shared/config/config.ts";
import { elapsedMs, now } from "../../shared/clock.ts";
import { mintEventId, USAGE_SETTLED } from "../../shared/event.ts";
import type { Actor, EventRecord, EventType } from "../../shared/event.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { logAlert, logWarning, errorMessageOf } from "../../shared/log.ts";
import { callObject } from "../../shared/reach-object.ts";
import { toStorageFailure } from "../../shared/storage-failure.ts";
import type { ReplayStart, StreamQuery, StreamStart } from "../../shared/contracts/usage-stream.ts";
import { createOrMigrateTables, migrateExistingTables } from "../../shared/tables.do.ts";
import { withTimeout } from "../../shared/timers.ts";
import type {
  DeliveryAttempt,
  WebhookDeliveriesMethods,
  DeliveryDetail,
  DeliveryPage,
  DeliveryQuery,
  WebhookHealth,
  ResendSelection,
} from "../../shared/contracts/deliveries.ts";
import {
  webhookMessageBody,
  nextDeliveryTime,
  queueEvents,
  renameEvents,
  requeueEvents,
  resendDeliveries,
  selectDeliveries,
  selectDueDelivery,
} from "./delivery-rows.do.ts";
import type { DueDelivery, Receiver } from "./delivery-rows.do.ts";
import { recordAttempt, selectDeliveryDetail, selectWebhookHealth } from "./attempt-rows.do.ts";
import {
  DELIVERY_TABLES,
  countTestMessage,
  endWebhookPause,
  syncWebhookStates,
  selectWebhookStates,
  storeStreamState,
} from "./receiver-rows.do.ts";
import { refuseDisabled, reasonToDisable, deliveryNotFound, retryTime } from "./delivery-rules.ts";
import { Notifications } from "../notifications/send-notifications.ts";
import { findUsageFormat } from "./usage-formats.ts";
import {
  isStreamDue,
  isRepeatUnsafe,
  nextBatch,
  recordBatch,
  recordSentCalls,
  refuseReplay,
  findPossiblySentRow,
} from "./usage-batches.do.ts";
import type { UsageBatch } from "./usage-batches.do.ts";
import { createEventCall, createUnsentAttempt, decryptKeys, sendCalls } from "./send-calls.ts";
import type { MessageKeys, ReceiverMessage, SentAttempt } from "./send-calls.ts";
import { disableWebhook, listWebhooks, webhookNotFound } from "./webhooks.store.ts";
import type { Webhook } from "./webhooks.store.ts";

const DATABASE_TIMEOUT_MS = 5000;
const WATCHDOG_MS = 60_000;
const TESTS_PER_MINUTE_MAX = 5;

/**
 * Delivers events to webhooks at least once. Each webhook has its own queue, so a failing webhook
 * doesn't delay others.
 */
export class WebhookDeliveries extends DurableObject<Env> implements WebhookDeliveriesMethods {
  readonly #delivering = new Set<string>();
  #lastReload: Promise<unknown> = Promise.resolve();
  readonly #notifications = new Notifications(this.env.DB, (work) => this.ctx.waitUntil(work));

  async take(orgId: string, events: readonly EventRecord[]): Promise<void> {
    try {
      await this.#reload(orgId);
    } catch (error) {
      if (!this.#hasTables()) throw error; // the caller retries, because the organization may have webhooks
      logWarning("webhooks_unreadable", { org_id: orgId, reason: errorMessageOf(error) });
    }
    if (this.#hasTables()) {
      const receivers = this.#receivers();
      queueEvents(this.ctx.storage, events, { receivers, nowMs: now(this.env) });
      this.#startDeliveries();
    }
    const parsed = configOf(this.env);
    if (!parsed.ok || parsed.config.mail === null) return;
    await this.#notifications.send(parsed.config.mail, orgId, events);
  }

  async rename(events: readonly EventRecord[]): Promise<void> {
    if (this.#hasTables()) renameEvents(this.ctx.storage, events, this.#receivers());
  }

  async refresh(orgId: string): Promise<Result<null>> {
    try {
      await this.#reload(orgId);
    } catch (error) {
      return refuse(toStorageFailure(error));
    }
    this.#startDeliveries();
    return success(null);
  }

  async sendTest(orgId: string, webhookId: string, actor: Actor): Promise<Result<DeliveryAttempt>> {
    const found = await this.#findReceiver(orgId, webhookId);
    if (!found.ok) return found;
    const nowMs = now(this.env);
    const { webhook } = found.value;
    if (findUsageFormat(webhook.format) !== null) {
      return invalid(`The format "${webhook.format}" has no test message.`, "format");
    }
    const { sql } = this.ctx.storage;
    const retryAfterMs = countTestMessage(sql, webhookId, { limit: TESTS_PER_MINUTE_MAX, nowMs });
    if (retryAfterMs > 0) {
      return refuse({
        kind: "rate_limited",
        scope: "webhook_tests",
        limit: TESTS_PER_MINUTE_MAX,
        retryAfterMs,
      });
    }
    const event: EventRecord = {
      id: mintEventId(nowMs),
      type: "webhook.test" as EventType, // events of this type are never stored
      createdAt: nowMs,
      actor,
      subject: webhookId,
      data: {},
    };
    const calls = [createEventCall(webhook, webhookMessageBody(webhook, event))] as const;
    const { attempt } = await this.#sendMessage(webhook, { eventId: event.id, calls });
    if (attempt.error === null) {
      endWebhookPause(sql, webhookId);
      this.#startDeliveries();
    }
    return success(attempt);
  }

  async deliveries(webhookId: string, page: DeliveryQuery): Promise<Result<DeliveryPage>> {
    if (!this.#hasTables()) return success({ deliveries: [], nextAfter: null });
    const found = selectDeliveries(this.ctx.storage.sql, webhookId, page);
    return found === null
      ? invalid("after must be the id of a delivery of this webhook.", "after")
      : success(found);
  }

  async delivery(webhookId: string, deliveryId: string): Promise<Result<DeliveryDetail>> {
    const { sql } = this.ctx.storage;
    const found = this.#hasTables() ? selectDeliveryDetail(sql, webhookId, deliveryId) : null;
    return found === null ? deliveryNotFound() : success(found);
  }

  async health(): Promise<Result<Readonly<Record<string, WebhookHealth>>>> {
    return success(
      this.#hasTables() ? selectWebhookHealth(this.ctx.storage.sql, now(this.env)) : {},
    );
  }

  async resend(orgId: string, webhookId: string, which: ResendSelection): Promise<Result<number>> {
    const found = await this.#findEnabledReceiver(orgId, webhookId);
    if (!found.ok) return found;
    const { storage } = this.ctx;
    const result = resendDeliveries(storage, webhookId, { which, nowMs: now(this.env) });
    if (result === 0 && "deliveryId" in which) return deliveryNotFound();
    if (result > 0) endWebhookPause(storage.sql, webhookId);
    this.#startDeliveries();
    return success(result);
  }

  async replay(
    orgId: string,
    webhookId: string,
    { events, replayId }: { readonly events: readonly EventRecord[]; readonly replayId: string },
  ): Promise<Result<number>> {
    const found = await this.#findEnabledReceiver(orgId, webhookId);
    if (!found.ok) return found;
    const replay = { events, replayId, nowMs: now(this.env) };
    const queued = requeueEvents(this.ctx.storage, found.value, replay);
    if (queued === null) {
      const message =
        "Messages of an earlier replay to this webhook are still pending. Try again later.";
      return refuse({ kind: "conflict", message, param: null, code: "replay_in_progress" });
    }
    this.#startDeliveries();
    return success(queued);
  }

  async restartStream(
    orgId: string,
    webhookId: string,
    from: StreamStart,
    first?: ReplayStart,
  ): Promise<Result<null>> {
    const found = await this.#findEnabledReceiver(orgId, webhookId);
    if (!found.ok) return found;
    const { stream } = found.value;
    if (stream === null) {
      return invalid(`This webhook's types don't include ${USAGE_SETTLED}.`, "types");
    }
    const refusal = refuseReplay(found.value.webhook, stream, { first, nowMs: now(this.env) });
    if (refusal !== null) return refusal;
    const unsure = findPossiblySentRow(stream, first);
    const restarted = { ...stream, from, nextAt: now(this.env), idleMs: 0, unsure };
    storeStreamState(this.ctx.storage.sql, webhookId, restarted);
    this.#startDeliveries();
    return success(null);
  }

  async poke(): Promise<void> {
    this.#startDeliveries();
  }

  override async alarm(): Promise<void> {
    if (!this.#hasTables()) return;
    this.#startDeliveries();
    await this.#disableFailing();
  }

  #startDeliveries(): void {
    if (!this.#hasTables()) return;
    const nowMs = now(this.env);
    for (const receiver of this.#receivers().filter(isEnabled)) {
      const { webhook } = receiver;
      const at = nextDeliveryTime(this.ctx.storage.sql, receiver);
      if (at === null || at > nowMs || this.#delivering.has(webhook.id)) continue;
      this.#delivering.add(webhook.id);
      this.ctx.waitUntil(this.#deliverQueue(webhook.id));
    }
    this.#setAlarm(0);
  }

  async #deliverQueue(webhookId: string): Promise<void> {
    let delayMinMs = 0;
    try {
      while (await this.#deliverNext(webhookId));
    } catch (error) {
      delayMinMs = WATCHDOG_MS;
      logWarning("webhook_line_broken", { webhook_id: webhookId, reason: errorMessageOf(error) });
    } finally {
      this.#delivering.delete(webhookId);
      this.#setAlarm(delayMinMs);
    }
  }

  async #deliverNext(webhookId: string): Promise<boolean> {
    const { storage } = this.ctx;
    const receiver = this.#receivers().find(({ webhook }) => webhook.id === webhookId);
    if (receiver === undefined || !isEnabled(receiver)) return false;
    const queued = selectDueDelivery(storage.sql, receiver, now(this.env));
    let batch = await this.#nextBatch(receiver, queued);
    const due = batch?.due ?? queued;
    if (due === null || (due.type === USAGE_SETTLED && batch === null)) return false;
    const calls = batch?.calls ?? ([createEventCall(receiver.webhook, due.body)] as const);
    const onStep: ReceiverMessage["onStep"] = (taken, sending) => {
      const nowMs = now(this.env);
      batch &&= recordSentCalls(storage, receiver.webhook, { batch, taken, sending, nowMs });
    };
    const sending = isRepeatUnsafe(receiver, now(this.env))
      ? createUnsentAttempt("repeat_unsafe")
      : await this.#sendMessage(receiver.webhook, { eventId: due.eventId, calls, onStep });
    const ending = this.#recordDelivery(receiver, { due, sending, batch });
    if (ending !== null) await this.#disableFailing();
    return true;
  }

  #recordDelivery(
    receiver: Receiver,
    {
      due,
      sending,
      batch,
    }: {
      readonly due: DueDelivery;
      readonly sending: SentAttempt;
      readonly batch: UsageBatch | null;
    },
  ): string | null {
    const { webhook, failingSince } = receiver;
    const nowMs = now(this.env);
    const { attempt } = sending;
    const since = { failingSince: failingSince ?? nowMs, nowMs };
    const ending = attempt.error === null ? null : reasonToDisable(attempt, since);
    const record = { webhookId: webhook.id, due, sending };
    if (batch === null) {
      const nextAt = attempt.error === null ? null : retryTime(due.attempts + 1, nowMs);
      recordAttempt(this.ctx.storage, record, { nowMs, nextAt, ending });
    } else recordBatch(this.ctx.storage, { ...record, batch, receiver }, { nowMs, ending });
    return ending;
  }

  async #nextBatch(receiver: Receiver, queued: DueDelivery | null): Promise<UsageBatch | null> {
    const nowMs = now(this.env);
    const { stream, webhook } = receiver;
    const isDue = queued === null ? isStreamDue(receiver, nowMs) : queued.type === USAGE_SETTLED;
    if (stream === null || !isDue) return null;
    const wallet = () => objectsOf(this.env).wallet(webhook.orgId);
    const read = (query: StreamQuery) => callObject(() => wallet().usageStream(query));
    return nextBatch({ storage: this.ctx.storage, read, nowMs }, { ...receiver, stream }, queued);
  }

  async #sendMessage(
    webhook: Webhook,
    { eventId, calls, onStep }: ReceiverMessage,
  ): Promise<SentAttempt> {
    const keys = await this.#readKeys(webhook);
    if (keys === null) {
      logAlert("webhook_secret_unreadable", { org_id: webhook.orgId, webhook_id: webhook.id });
      return createUnsentAttempt("secret_unreadable");
    }
    const timeoutMs = numberVar(this.env, "WEBHOOK_TIMEOUT_MS");
    const clock = { timeoutMs, elapsed: elapsedMs, nowMs: now(this.env) };
    return sendCalls(calls, { keys, eventId, clock }, onStep);
  }

  /** Reads the secrets again after a failure, because D1 may have new ones. */
  async #readKeys(webhook: Webhook): Promise<MessageKeys | null> {
    const parsed = configOf(this.env);
    if (!parsed.ok) return null;
    const { keySecrets } = parsed.config;
    const known = await decryptKeys(webhook, keySecrets, now(this.env));
    if (known !== null) return known;
    await this.#reload(webhook.orgId);
    const found = this.#receivers().find((one) => one.webhook.id === webhook.id);
    return found === undefined ? null : decryptKeys(found.webhook, keySecrets, now(this.env));
  }

  async #disableFailing(): Promise<void> {
    const disabledReceivers = this.#receivers().filter(({ ending }) => ending !== null);
    for (const { webhook, ending } of disabledReceivers) {
      try {
        const off = { reason: ending ?? "", nowMs: now(this.env) };
        await withTimeout(disableWebhook(this.env.DB, webhook, off), DATABASE_TIMEOUT_MS);
        await this.#reload(webhook.orgId);
        const parsed = configOf(this.env);
        if (!parsed.ok) continue;
        const wallet = objectsOf(this.env).wallet(webhook.orgId);
        await withTimeout(wallet.takeEvents(), DATABASE_TIMEOUT_MS);
      } catch (error) {
        const reason = errorMessageOf(error);
        logWarning("webhook_not_disabled", { webhook_id: webhook.id, reason });
      }
    }
    this.#setAlarm(0);
  }

  #setAlarm(delayMinMs: number): void {
    const nowMs = now(this.env);
    const due = this.#receivers().map((receiver) => {
      if (receiver.ending !== null) return nowMs + WATCHDOG_MS;
      const at = isEnabled(receiver) ? nextDeliveryTime(this.ctx.storage.sql, receiver) : null;
      if (at === null) return Infinity;
      return this.#delivering.has(receiver.webhook.id) ? nowMs + WATCHDOG_MS : at;
    });
    const at = Math.min(...due);
    if (at === Infinity) return;
    void this.ctx.storage.setAlarm(now({}) + Math.max(delayMinMs, at - nowMs, 0));
  }

  async #findReceiver(orgId: string, webhookId: string): Promise<Result<Receiver>> {
    const refresh = await this.refresh(orgId);
    if (!refresh.ok) return refresh;
    const found = this.#receivers().find(({ webhook }) => webhook.id === webhookId);
    return found === undefined ? webhookNotFound() : success(found);
  }

  async #findEnabledReceiver(orgId: string, webhookId: string): Promise<Result<Receiver>> {
    const found = await this.#findReceiver(orgId, webhookId);
    return found.ok && !isEnabled(found.value) ? refuseDisabled() : found;
  }

  #reload(orgId: string): Promise<void> {
    const reload = this.#reloadAfter(this.#lastReload, orgId);
    this.#lastReload = reload.catch(() => undefined);
    return reload;
  }

  async #reloadAfter(before: Promise<unknown>, orgId: string): Promise<void> {
    await before;
    const webhooks = await withTimeout(listWebhooks(this.env.DB, orgId), DATABASE_TIMEOUT_MS);
    if (webhooks.length === 0 && !this.#hasTables()) return;
    createOrMigrateTables(this.ctx.storage, DELIVERY_TABLES);
    syncWebhookStates(this.ctx.storage, webhooks);
  }

  #hasTables(): boolean {
    return migrateExistingTables(this.ctx.storage, DELIVERY_TABLES);
  }

  #receivers(): readonly Receiver[] {
    return this.#hasTables() ? selectWebhookStates(this.ctx.storage.sql) : [];
  }
}

function isEnabled({ webhook, ending }: Receiver): boolean {
  return webhook.disabledReason === null && ending === null;
}
