import { assert } from "../../shared/assert.ts";
import { requestCredential } from "../../shared/caller.ts";
import type { RequestCredential, PresentedSecret } from "../../shared/caller.ts";
import type { BudgetStatus } from "../../shared/budgets.ts";
import { now } from "../../shared/clock.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import type { Actor, EventRecord } from "../../shared/event.ts";
import type { FailureBatch, FailureQuery, FailureReport } from "../../shared/failed-request.ts";
import type { Generation } from "../../shared/generation.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type { KeySecrets } from "../../shared/key.ts";
import type { AdmittedKey } from "../../shared/contracts/register.ts";
import type { KeyTerms } from "../../shared/key-terms.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { ownsSnapshot } from "./snapshot-ownership.ts";
import { deleteUnusedWalletRows, readSnapshotHead } from "./snapshot.store.ts";
import {
  admit,
  admitAndHold,
  applyCallerChange,
  createGate,
  placeRequestHold,
  readKeyStatus,
  applyKeyChange,
} from "./object/admission.do.ts";
import type { Gate } from "./object/admission.do.ts";
import { Decisions, refuseUnavailable } from "./object/decisions.do.ts";
import * as endUsers from "./object/end-users.do.ts";
import * as settings from "./object/settings.do.ts";
import { readBalance } from "./object/balance.do.ts";
import { isUnpublished, assertCurrentInstance } from "./object/memory.do.ts";
import type { Tx } from "./object/memory.do.ts";
import { budgetStatusesOf } from "./object/budget-status.do.ts";
import { setBudgets } from "./object/budgets.do.ts";
import { creditBalance, settle, voidHold } from "./object/postings.do.ts";
import { publish } from "./object/publish.do.ts";
import { storeFailures, readFailures } from "./object/failures.do.ts";
import * as reads from "./object/reads.do.ts";
import { WebhookFeed, flushFinishedHours, takeWaitingEvents } from "./object/events.do.ts";
import {
  adoptSnapshot,
  copySnapshot,
  dropSnapshotCopy,
  rejectNeedlessRebuild,
} from "./object/rebuild.do.ts";
import { endSessionForCaller, listSessions } from "./object/sessions.do.ts";
import { reconcile, readVitals } from "./object/reconcile.do.ts";
import { runGroup } from "./object/group.do.ts";
import { notifyTopUp } from "./object/top-up-notice.do.ts";
import { WalletTransactions } from "./wallet-transactions.do.ts";
import { measureStorage, deleteExpiredRows } from "./object/retention.do.ts";
import { selectEventsSince } from "./object/event-log.do.ts";
import { selectUsedKey } from "./tables/key-rows.do.ts";
import { createWallet, wasWalletUsed } from "./tables/wallet-schema.do.ts";
import type { ReconcileOptions, Reconciliation } from "../../shared/contracts/reconciliation.ts";
import type { SettingsWithBudgets, SettingsChange } from "../../shared/contracts/settings.ts";
import type * as Contract from "../../shared/contracts/wallet.ts";
import type { BudgetsChange } from "../../shared/contracts/limits.ts";

/** Ms between alarms of an unreadable wallet. Without them, the platform would stop retrying. */
const LOST_RETRY_MS = 60_000;

/** Stores and changes all money of an organization. `WalletCalls` documents the calls. */
export class Wallet extends WalletTransactions implements Contract.WalletCalls {
  readonly #decisions: Decisions;
  readonly #gate: Gate;
  readonly #webhookFeed: WebhookFeed;
  /** The current read of events from D1, which concurrent callers share. */
  #currentRead: Promise<void> = Promise.resolve();
  #nextRead: Promise<void> | null = null;
  #rebuilding: Promise<Result<Contract.WalletBalance>> | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const onUndelivered = (): void => this.#notify();
    this.#decisions = new Decisions(ctx.storage, () => this.env, onUndelivered);
    this.#webhookFeed = new WebhookFeed(this.#decisions, () => this.env);
    this.#gate = createGate(this.#decisions, ctx, () => this.env);
    void ctx.blockConcurrencyWhile(async () => {
      this.#decisions.start(await ctx.storage.getAlarm());
    });
  }

  protected override getDecisions = (): Decisions => this.#decisions;
  protected override getGate = (): Gate => this.#gate;

  async create(orgId: string): Promise<{ readonly epoch: string }> {
    if (this.#decisions.openIfCreated() === null) this.#createTables(orgId, crypto.randomUUID());
    const { row } = this.#decisions.open().memory;
    assert(row.orgId === orgId, "a wallet belongs to one organization");
    return { epoch: row.epoch };
  }

  async discard(): Promise<boolean> {
    const tx = this.#decisions.openIfCreated();
    if (tx === null) return true;
    if (wasWalletUsed(tx.sql)) return false;
    const { orgId, epoch } = tx.memory.row;
    this.#decisions.reset();
    this.#gate.keys.clearCache();
    await this.ctx.storage.deleteAll();
    await deleteUnusedWalletRows(this.env.DB, orgId, epoch);
    return true;
  }

  admit(keyHash: string, shown?: PresentedSecret): Promise<Result<AdmittedKey>> {
    return admit(this.#gate, requestCredential(keyHash, shown));
  }

  admitAndHold(
    keyHash: string,
    request: Contract.HoldRequest,
    shown?: PresentedSecret,
  ): Promise<Result<Contract.AdmittedHold>> {
    return admitAndHold(this.#gate, requestCredential(keyHash, shown), request);
  }

  async revokeKey(
    keyHash: string,
    revokedAt: number,
    by?: Contract.KeyRevocation,
  ): Promise<Result<null>> {
    return applyKeyChange(this.#gate, (keys, tx) => keys.revoke(tx, keyHash, revokedAt, by));
  }

  async keyOf(keyId: string): Promise<Result<Contract.UsedKey | null>> {
    return this.#decisions.decide((tx) => success(selectUsedKey(tx.sql, keyId)));
  }

  async setKeyLimit(keyHash: string, rpmLimit: number): Promise<Result<null>> {
    return applyKeyChange(this.#gate, (keys, tx) => keys.setLimit(tx, keyHash, rpmLimit));
  }

  async setKeyTerms(keyHash: string, terms: KeyTerms): Promise<Result<null>> {
    return applyKeyChange(this.#gate, (keys, tx) => keys.setTerms(tx, keyHash, terms));
  }

  async setKeySecrets(
    keyHash: string,
    secrets: KeySecrets,
    by?: Contract.KeyRotation,
  ): Promise<Result<null>> {
    return applyKeyChange(this.#gate, (keys, tx) => keys.setSecrets(tx, keyHash, secrets, by));
  }

  keyStanding(...[keyHash, shown, ...how]: Parameters<Contract.WalletCalls["keyStanding"]>) {
    return readKeyStatus(this.#gate, requestCredential(keyHash, shown), ...how);
  }

  hold(
    request: Contract.HoldRequest,
    keyHash?: string,
    shown?: PresentedSecret,
  ): Promise<Result<Contract.HoldGrant>> {
    return placeRequestHold(
      this.#gate,
      request,
      keyHash === undefined ? undefined : requestCredential(keyHash, shown),
    );
  }

  async sessions(query: Contract.SessionQuery): Promise<Result<Contract.SessionPage>> {
    return this.#decisions.decide((tx) => success(listSessions(tx, query)));
  }

  async endSession(ending: Contract.SessionEnding): Promise<Result<null>> {
    return this.#decisions.decide((tx) => endSessionForCaller(tx, ending));
  }

  async settle(
    settlement: Contract.Settlement,
    actor?: Actor,
  ): Promise<Result<Contract.SettleResult>> {
    return this.#decisions.decide((tx) => settle(tx, settlement, actor));
  }

  async void(id: string, absorbed: Generation | null = null): Promise<Result<Contract.VoidResult>> {
    return this.#decisions.decide((tx) => voidHold(tx, id, absorbed));
  }

  together(parts: readonly Contract.WalletPart[]): ReturnType<Contract.WalletCalls["together"]> {
    return runGroup(this.#gate, this, parts);
  }

  async setBudgets(
    change: BudgetsChange,
    by?: RequestCredential,
  ): Promise<Result<readonly BudgetStatus[]>> {
    return applyCallerChange(this.#gate, by, (tx) => {
      setBudgets(tx, change.owner, change.budgets);
      return success(budgetStatusesOf(tx, change.owner));
    });
  }

  async credit(request: Contract.CreditRequest): Promise<Result<Contract.WalletBalance>> {
    return this.#decisions.decide((tx) => creditBalance(tx, request));
  }

  async balance(): Promise<Result<Contract.WalletBalance>> {
    return this.#decisions.decide((tx) => {
      assertCurrentInstance(tx);
      return success(readBalance(tx));
    });
  }

  async configure(change: Contract.ConfigurationChange): Promise<Result<Contract.Configuration>> {
    return this.#decisions.decide((tx) => settings.configure(tx, change));
  }

  async putEndUser(
    externalId: string,
    change: Contract.EndUserChange,
    by?: RequestCredential,
  ): Promise<Result<Contract.PutEndUserResult>> {
    return applyCallerChange(this.#gate, by, (tx) => endUsers.putEndUser(tx, externalId, change));
  }

  async patchEndUser(
    externalId: string,
    change: Contract.EndUserChange,
    by?: RequestCredential,
  ): Promise<Result<Contract.EndUserRecord>> {
    return applyCallerChange(this.#gate, by, (tx) => endUsers.patchEndUser(tx, externalId, change));
  }

  async readEndUser(externalId: string): Promise<Result<Contract.EndUserRecord>> {
    return this.#decisions.decide((tx) => endUsers.readEndUser(tx, externalId));
  }

  async listEndUsers(
    limit: number,
    offset: number,
    after?: string,
  ): Promise<Result<Contract.EndUserPage>> {
    const page = { limit, offset, after: after ?? null };
    return this.#decisions.decide((tx) => endUsers.listEndUsers(tx, page));
  }

  async deleteEndUser(
    externalId: string,
    by?: RequestCredential,
  ): Promise<Result<{ readonly externalId: string }>> {
    return applyCallerChange(this.#gate, by, (tx) => endUsers.deleteEndUser(tx, externalId));
  }

  async readSettings(): Promise<Result<SettingsWithBudgets>> {
    return this.#decisions.decide((tx) => settings.readSettings(tx));
  }

  async patchSettings(
    change: SettingsChange,
    by?: RequestCredential,
    actor?: Actor,
  ): Promise<Result<SettingsWithBudgets>> {
    return applyCallerChange(this.#gate, by, (tx) => settings.patchSettings(tx, change, actor));
  }

  async request(id: string): Promise<Result<Contract.RequestRecord>> {
    return this.#decisions.decide((tx) => reads.readRequest(tx, id));
  }

  async requests(query: Contract.RequestQuery): Promise<Result<Contract.RequestPage>> {
    return this.#decisions.decide((tx) => reads.readRequests(tx, query));
  }

  async noteFailed(batch: FailureBatch): Promise<Result<null>> {
    return this.#decisions.decide((tx) => storeFailures(tx, batch));
  }

  async failures(query: FailureQuery): Promise<Result<FailureReport>> {
    return this.#decisions.decide((tx) => readFailures(tx, query));
  }

  async events(query: Contract.EventQuery): Promise<Result<Contract.EventPage>> {
    await this.takeEvents();
    return this.#decisions.decide((tx) => reads.readEvents(tx, query));
  }

  async eventsSince(sinceMs: number, limit: number): Promise<Result<readonly EventRecord[]>> {
    await this.takeEvents();
    return this.#decisions.decide((tx) => success(selectEventsSince(tx, sinceMs, limit)));
  }

  takeEvents(): Promise<void> {
    this.#nextRead ??= this.#currentRead.then(() => {
      this.#nextRead = null;
      this.#currentRead = takeWaitingEvents(this.env.DB, this.#decisions);
      return this.#currentRead;
    });
    return this.#nextRead;
  }

  async poke(): Promise<Result<Contract.WalletHealth>> {
    const before = this.#decisions.tryOpen();
    if (before === null) return refuseUnavailable();
    await this.#work(isUnpublished(before.memory) || before.memory.row.conflict !== null);
    await this.takeEvents(); // after a publish, which selects its rows synchronously
    const tx = this.#decisions.tryOpen();
    return tx === null ? refuseUnavailable() : success(readVitals(tx));
  }

  reconcile(request: ReconcileOptions = {}): Promise<Result<Reconciliation>> {
    return reconcile(this.#decisions, this.env.DB, request);
  }

  rebuild(orgId: string, actor: Actor = SYSTEM_ACTOR): Promise<Result<Contract.WalletBalance>> {
    this.#rebuilding ??= this.#rebuild(orgId, actor).finally(() => {
      this.#rebuilding = null;
    });
    return this.#rebuilding;
  }

  override async alarm(): Promise<void> {
    this.#decisions.schedule.clearAlarm();
    if (this.#decisions.tryOpen() !== null) await this.#work(false);
    else if (this.#decisions.isLost) await this.ctx.storage.setAlarm(now({}) + LOST_RETRY_MS);
  }

  async #rebuild(orgId: string, actor: Actor): Promise<Result<Contract.WalletBalance>> {
    const head = await readSnapshotHead(this.env.DB, orgId);
    const before = this.#decisions.openIfCreated();
    if (before !== null && head !== null && ownsSnapshot(before.memory.row, head)) {
      return rejectNeedlessRebuild();
    }
    const snapshot = await copySnapshot(this.ctx.storage.sql, this.env.DB, orgId);
    if (snapshot === null) {
      return refuse({
        kind: "not_found",
        message: "The database has no balance of this organization.",
      });
    }
    const isNew = this.#decisions.openIfCreated() === null;
    try {
      return this.ctx.storage.transactionSync(() => {
        if (isNew) this.#createTables(orgId, snapshot.head.epoch);
        return this.#decisions.decide((tx) => {
          const refused = adoptSnapshot(tx, snapshot, { isNew, actor });
          if (refused !== null) return refused;
          this.#gate.keys.evictAll(tx);
          this.#decisions.load();
          return success(readBalance(this.#decisions.open()));
        });
      });
    } catch (error) {
      if (isNew) this.#decisions.reset(); // the wallet wasn't created
      throw error;
    } finally {
      dropSnapshotCopy(this.ctx.storage.sql);
    }
  }

  #createTables(orgId: string, epoch: string): void {
    createWallet(this.ctx.storage, { orgId, epoch, nowMs: now(this.env) });
    this.#decisions.load();
  }

  /**
   * Runs due work. Sets the next alarm last, because an alarm that is set earlier would run
   * immediately. `mustPublish` publishes without waiting and checks for a conflict again.
   */
  async #work(mustPublish: boolean): Promise<void> {
    const { schedule } = this.#decisions;
    this.#decisions.decideSilently((tx) => {
      if (schedule.isRetentionDue(tx)) schedule.endRetention(tx, deleteExpiredRows(tx));
      measureStorage(tx);
      this.#gate.keys.recoverLostUses(tx);
      return success(null);
    });
    const isDue = schedule.isPublishDue(this.#decisions.open().nowMs);
    if ((mustPublish || isDue) && !schedule.isPublishing) await this.#publish();
    const tx = this.#decisions.openIfCreated();
    if (tx !== null) this.#decisions.schedule.arm(tx);
  }

  async #publish(): Promise<void> {
    this.#decisions.schedule.startPublish();
    const live = (): Tx | null => this.#decisions.openIfCreated();
    let eventsWait = true;
    try {
      const reported = await publish(this.#decisions.open(), live);
      this.#gate.keys.refreshPublished(live(), reported);
      ({ eventsWait } = reported);
    } catch (error) {
      logWarning("publish_failed", { reason: errorMessageOf(error) });
    } finally {
      this.#decisions.schedule.endPublish(now(this.env));
    }
    if (eventsWait) await this.takeEvents();
    else flushFinishedHours(this.#decisions);
    this.#notify();
  }

  #notify(): void {
    this.ctx.waitUntil(this.#webhookFeed.deliver());
    this.ctx.waitUntil(notifyTopUp(this.#decisions, this.env));
  }
}
