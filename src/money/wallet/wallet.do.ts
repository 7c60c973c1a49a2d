import { assert } from "../../shared/assert.ts";
import { createRequestCredential } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import type { WalletMethods } from "../../shared/contracts/wallet.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import type { Actor } from "../../shared/event.ts";
import { refuse, success } from "../../shared/failure.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { isOwnSnapshot, deleteUnusedWalletRows, readWalletSnapshotHead } from "./snapshot.store.ts";
import {
  admitKeyRequest,
  admitAndHold,
  applyKeyChange,
  findRequestsToStop,
  placeClientHold,
  placeRequestHold,
  readKeyStatus,
  runWalletCallGroup,
} from "./object/admission.do.ts";
import { refuseStorageUnavailable } from "./object/decisions.do.ts";
import { readBalance } from "./object/reads.do.ts";
import * as reads from "./object/reads.do.ts";
import { isUnpublished } from "./object/memory.do.ts";
import type { Tx } from "./object/memory.do.ts";
import { publish } from "./object/publish.do.ts";
import {
  WebhookFeed,
  flushSuppressedEventsInTransaction,
  takeWaitingEvents,
  notifyTopUp,
} from "./object/events.do.ts";
import {
  restoreFromSnapshot,
  copySnapshot,
  dropSnapshotCopy,
  rejectNeedlessRebuild,
} from "./object/rebuild.do.ts";
import { reconcileWallet, readWalletHealth } from "./object/reconcile.do.ts";
import { WalletTransactions } from "./wallet-transactions.do.ts";
import type { WalletCallArguments } from "./wallet-transactions.do.ts";
import { updateStorageState, runRetention } from "./object/retention.do.ts";
import { selectEventsSince } from "./object/event-log.do.ts";
import { createWallet, hasWalletBeenUsed } from "./tables/wallet-schema.do.ts";

/** Ms between alarms of an unreadable wallet. Without them, the platform would stop retrying. */
const LOST_RETRY_MS = 60_000;

/** Stores and changes all money of an organization. `WalletMethods` documents the calls. */
export class Wallet extends WalletTransactions implements WalletMethods {
  readonly #webhookFeed = new WebhookFeed(this.decisions, () => this.env);
  /** The current read of events from D1, shared by concurrent callers. */
  #currentRead: Promise<void> = Promise.resolve();
  #nextRead: Promise<void> | null = null;
  #rebuilding: ReturnType<WalletMethods["rebuild"]> | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.decisions.start(await ctx.storage.getAlarm());
    });
  }

  protected override readonly notify = (): void => {
    this.ctx.waitUntil(this.#webhookFeed.deliver());
    this.ctx.waitUntil(notifyTopUp(this.decisions, this.env));
  };

  async create(orgId: string) {
    if (this.decisions.openIfCreated() === null) this.#createTables(orgId, crypto.randomUUID());
    const { row } = this.decisions.open().memory;
    assert(row.orgId === orgId, "a wallet belongs to one organization");
    return { epoch: row.epoch };
  }

  async discard() {
    const tx = this.decisions.openIfCreated();
    if (tx === null) return true;
    if (hasWalletBeenUsed(tx.sql)) return false;
    const { orgId, epoch } = tx.memory.row;
    this.decisions.reset();
    this.gate.keys.clearCache();
    await this.ctx.storage.deleteAll();
    await deleteUnusedWalletRows(this.env.DB, orgId, epoch);
    return true;
  }

  admit(...[keyHash, shown]: WalletCallArguments<"admit">) {
    return admitKeyRequest(this.gate, createRequestCredential(keyHash, shown));
  }

  admitAndHold(...[keyHash, request, shown]: WalletCallArguments<"admitAndHold">) {
    return admitAndHold(this.gate, createRequestCredential(keyHash, shown), request);
  }

  async revokeKey(...args: WalletCallArguments<"revokeKey">) {
    return applyKeyChange(this.gate, (keys, tx) => keys.revoke(tx, ...args));
  }

  async setKeyLimit(...args: WalletCallArguments<"setKeyLimit">) {
    return applyKeyChange(this.gate, (keys, tx) => keys.setLimit(tx, ...args));
  }

  async setKeyTerms(...args: WalletCallArguments<"setKeyTerms">) {
    return applyKeyChange(this.gate, (keys, tx) => keys.setTerms(tx, ...args));
  }

  async setKeySecrets(...args: WalletCallArguments<"setKeySecrets">) {
    return applyKeyChange(this.gate, (keys, tx) => keys.setSecrets(tx, ...args));
  }

  keyStanding(...[keyHash, shown, ...how]: WalletCallArguments<"keyStanding">) {
    return readKeyStatus(this.gate, createRequestCredential(keyHash, shown), ...how);
  }

  hold(...[request, keyHash, shown]: WalletCallArguments<"hold">) {
    const called = keyHash === undefined ? undefined : createRequestCredential(keyHash, shown);
    return placeRequestHold(this.gate, request, called);
  }

  placeHold(...[request, called, isCaptured]: WalletCallArguments<"placeHold">) {
    return placeClientHold(this.gate, request, { called, isCaptured });
  }

  async watch(...[runs]: WalletCallArguments<"watch">) {
    return findRequestsToStop(this.gate, runs);
  }

  together(...[parts]: WalletCallArguments<"together">) {
    return runWalletCallGroup(this.gate, this, parts);
  }

  async events(...[query]: WalletCallArguments<"events">) {
    await this.takeEvents();
    return this.decisions.decide(reads.readEvents, query);
  }

  async eventsSince(...[sinceMs, limit]: WalletCallArguments<"eventsSince">) {
    await this.takeEvents();
    return this.decisions.decide((tx) => success(selectEventsSince(tx, sinceMs, limit)));
  }

  takeEvents(): Promise<void> {
    this.#nextRead ??= this.#currentRead.then(() => {
      this.#nextRead = null;
      this.#currentRead = takeWaitingEvents(this.env.DB, this.decisions);
      return this.#currentRead;
    });
    return this.#nextRead;
  }

  async poke(): ReturnType<WalletMethods["poke"]> {
    const before = this.decisions.tryOpen();
    if (before === null) return refuseStorageUnavailable();
    await this.#work(isUnpublished(before.memory) || before.memory.row.conflict !== null);
    // Takes events last, so that the publish selects its rows before any `await`.
    await this.takeEvents();
    const tx = this.decisions.tryOpen();
    return tx === null ? refuseStorageUnavailable() : success(readWalletHealth(tx));
  }

  reconcile(...[request = {}]: WalletCallArguments<"reconcile">) {
    return reconcileWallet(this.decisions, this.env.DB, request);
  }

  rebuild(...[orgId, actor = SYSTEM_ACTOR]: WalletCallArguments<"rebuild">) {
    this.#rebuilding ??= this.#rebuild(orgId, actor).finally(() => {
      this.#rebuilding = null;
    });
    return this.#rebuilding;
  }

  override async alarm(): Promise<void> {
    this.decisions.schedule.clearAlarm();
    if (this.decisions.tryOpen() !== null) await this.#work(false);
    else if (this.decisions.isLost) await this.ctx.storage.setAlarm(now({}) + LOST_RETRY_MS);
  }

  async #rebuild(orgId: string, actor: Actor): ReturnType<WalletMethods["rebuild"]> {
    const head = await readWalletSnapshotHead(this.env.DB, orgId);
    const before = this.decisions.openIfCreated();
    if (before !== null && head !== null && isOwnSnapshot(before.memory.row, head)) {
      return rejectNeedlessRebuild();
    }
    const snapshot = await copySnapshot(this.ctx.storage.sql, this.env.DB, orgId);
    if (snapshot === null) {
      return refuse({
        kind: "not_found",
        message: "The database has no balance for this organization.",
      });
    }
    const isNew = this.decisions.openIfCreated() === null;
    try {
      return this.ctx.storage.transactionSync(() => {
        if (isNew) this.#createTables(orgId, snapshot.head.epoch);
        return this.decisions.decide((tx) => {
          const refused = restoreFromSnapshot(tx, snapshot, { isNew, actor });
          if (refused !== null) return refused;
          this.gate.keys.evictAll(tx);
          this.decisions.load();
          return success(readBalance(this.decisions.open()));
        });
      });
    } catch (error) {
      if (isNew) this.decisions.reset(); // the wallet wasn't created
      throw error;
    } finally {
      dropSnapshotCopy(this.ctx.storage.sql);
    }
  }

  #createTables(orgId: string, epoch: string): void {
    createWallet(this.ctx.storage, { orgId, epoch, nowMs: now(this.env) });
    this.decisions.load();
  }

  /**
   * Runs due work. Sets the next alarm last, because an alarm set earlier would run immediately.
   * `mustPublish` publishes without waiting and rechecks a known conflict with D1.
   */
  async #work(mustPublish: boolean): Promise<void> {
    const { schedule } = this.decisions;
    this.decisions.decideSilently((tx) => {
      if (schedule.isRetentionDue(tx)) schedule.endRetention(tx, runRetention(tx));
      updateStorageState(tx);
      this.gate.keys.recoverLostUses(tx);
      return success(null);
    });
    const isDue = schedule.isPublishDue(this.decisions.open().nowMs);
    if ((mustPublish || isDue) && !schedule.isPublishing) await this.#publish();
    const tx = this.decisions.openIfCreated();
    if (tx !== null) this.decisions.schedule.arm(tx);
  }

  async #publish(): Promise<void> {
    this.decisions.schedule.startPublish();
    const live = (): Tx | null => this.decisions.openIfCreated();
    let eventsWait = true;
    try {
      const reported = await publish(this.decisions.open(), live);
      this.gate.keys.refreshPublished(live(), reported);
      ({ eventsWait } = reported);
    } catch (error) {
      logWarning("publish_failed", { reason: errorMessageOf(error) });
    } finally {
      this.decisions.schedule.endPublish(now(this.env));
    }
    if (eventsWait) await this.takeEvents();
    else flushSuppressedEventsInTransaction(this.decisions);
    this.notify();
  }
}
