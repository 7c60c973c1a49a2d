import { assert } from "../../shared/assert.ts";
import { requestCredential } from "../../shared/caller.ts";
import type { RequestCredential, PresentedSecret } from "../../shared/caller.ts";
import type { BudgetStatus } from "../../shared/budgets.ts";
import { now } from "../../shared/clock.ts";
import { SYSTEM } from "../../shared/event.ts";
import type { Actor, EventRecord } from "../../shared/event.ts";
import type { FailedBatch, FailureQuery, FailureReport } from "../../shared/failed-request.ts";
import type { Generation } from "../../shared/generation.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type { KeySecrets } from "../../shared/key.ts";
import type { AdmittedKey } from "../../shared/contracts/register.ts";
import type { KeyTerms } from "../../shared/key-terms.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { ownsSnapshot } from "./snapshot-ownership.ts";
import { deleteWalletRows, readSnapshotHead } from "./snapshot.store.ts";
import {
  admit,
  admitAndHold,
  changeBy,
  gateOf,
  holdFor,
  readKeyStatus,
  applyKeyChange,
} from "./object/admission.do.ts";
import type { Gate } from "./object/admission.do.ts";
import { Decisions, unavailable } from "./object/decisions.do.ts";
import * as endUsers from "./object/end-users.do.ts";
import * as settings from "./object/settings.do.ts";
import { balanceOf } from "./object/balance.do.ts";
import { isUnpublished, touchStorage } from "./object/memory.do.ts";
import type { Tx } from "./object/memory.do.ts";
import { budgetsOf } from "./object/budget-status.do.ts";
import { setBudgets } from "./object/budgets.do.ts";
import { credit, settle, voidHold } from "./object/postings.do.ts";
import { publish } from "./object/publish.do.ts";
import { noteFailed, readFailures } from "./object/failures.do.ts";
import * as reads from "./object/reads.do.ts";
import { WebhookFeed, flushFinishedHours, takeWaitingEvents } from "./object/events.do.ts";
import {
  adoptSnapshot,
  copySnapshot,
  deleteCopy,
  rejectNeedlessRebuild,
} from "./object/rebuild.do.ts";
import { endSessionBy, listSessions } from "./object/sessions.do.ts";
import { reconcile, vitalsOf } from "./object/reconcile.do.ts";
import { runGroup } from "./object/group.do.ts";
import { notifyTopUp } from "./object/top-up-notice.do.ts";
import { WalletTransactions } from "./wallet-transactions.do.ts";
import { measureStorage, deleteExpired } from "./object/retention.do.ts";
import { selectEventsSince } from "./object/event-log.do.ts";
import { selectUsedKey } from "./tables/key-rows.do.ts";
import { makeWallet, wasUsed } from "./tables/wallet-schema.do.ts";
import type { ReconcileAsk, Reconciliation } from "../../shared/contracts/reconciliation.ts";
import type { SettingsAnswer, SettingsChange } from "../../shared/contracts/settings.ts";
import type * as Contract from "../../shared/contracts/wallet.ts";
import type { BudgetsChange } from "../../shared/contracts/limits.ts";

/**
 * Interval between alarms of an unreadable wallet, in ms. Otherwise, the platform would stop
 * retrying.
 */
const LOST_RETRY_MS = 60_000;

/**
 * An organization's wallet. Only the wallet changes the organization's amounts of money.
 * `WalletCalls` documents the calls.
 */
export class Wallet extends WalletTransactions implements Contract.WalletCalls {
  readonly #decisions: Decisions;
  readonly #gate: Gate;
  readonly #webhookFeed: WebhookFeed;
  /** The current read of waiting events from D1. Concurrent callers share one read. */
  #currentRead: Promise<void> = Promise.resolve();
  #nextRead: Promise<void> | null = null;
  #rebuilding: Promise<Result<Contract.BalanceAnswer>> | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const onUndelivered = (): void => this.#notify();
    this.#decisions = new Decisions(ctx.storage, () => this.env, onUndelivered);
    this.#webhookFeed = new WebhookFeed(this.#decisions, () => this.env);
    this.#gate = gateOf(this.#decisions, ctx, () => this.env);
    void ctx.blockConcurrencyWhile(async () => {
      this.#decisions.start(await ctx.storage.getAlarm());
    });
  }

  protected override deciding = (): Decisions => this.#decisions;
  protected override gating = (): Gate => this.#gate;

  async create(orgId: string): Promise<{ readonly epoch: string }> {
    if (this.#decisions.openIfMade() === null) this.#createTables(orgId, crypto.randomUUID());
    const { row } = this.#decisions.open().memory;
    assert(row.orgId === orgId, "a wallet belongs to one organization");
    return { epoch: row.epoch };
  }

  async discard(): Promise<boolean> {
    const tx = this.#decisions.openIfMade();
    if (tx === null) return true;
    if (wasUsed(tx.sql)) return false;
    const { orgId, epoch } = tx.memory.row;
    this.#decisions.forget();
    this.#gate.keys.forget();
    await this.ctx.storage.deleteAll();
    await deleteWalletRows(this.env.DB, orgId, epoch);
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

  async revokeKey(keyHash: string, revokedAt: number, by?: Contract.KeyEnd): Promise<Result<null>> {
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
    return holdFor(
      this.#gate,
      request,
      keyHash === undefined ? undefined : requestCredential(keyHash, shown),
    );
  }

  async sessions(query: Contract.SessionQuery): Promise<Result<Contract.SessionPage>> {
    return this.#decisions.decide((tx) => success(listSessions(tx, query)));
  }

  async endSession(ending: Contract.SessionEnding): Promise<Result<null>> {
    return this.#decisions.decide((tx) => endSessionBy(tx, ending));
  }

  async settle(
    settlement: Contract.Settlement,
    actor?: Actor,
  ): Promise<Result<Contract.SettleAnswer>> {
    return this.#decisions.decide((tx) => settle(tx, settlement, actor));
  }

  async void(id: string, absorbed: Generation | null = null): Promise<Result<Contract.VoidAnswer>> {
    return this.#decisions.decide((tx) => voidHold(tx, id, absorbed));
  }

  together(parts: readonly Contract.WalletPart[]): ReturnType<Contract.WalletCalls["together"]> {
    return runGroup(this.#gate, this, parts);
  }

  async setBudgets(
    change: BudgetsChange,
    by?: RequestCredential,
  ): Promise<Result<readonly BudgetStatus[]>> {
    return changeBy(this.#gate, by, (tx) => {
      setBudgets(tx, change.owner, change.budgets);
      return success(budgetsOf(tx, change.owner));
    });
  }

  async credit(request: Contract.CreditRequest): Promise<Result<Contract.BalanceAnswer>> {
    return this.#decisions.decide((tx) => credit(tx, request));
  }

  async balance(): Promise<Result<Contract.BalanceAnswer>> {
    return this.#decisions.decide((tx) => {
      touchStorage(tx);
      return success(balanceOf(tx));
    });
  }

  async configure(change: Contract.ConfigurationChange): Promise<Result<Contract.Configuration>> {
    return this.#decisions.decide((tx) => settings.configure(tx, change));
  }

  async putEndUser(
    externalId: string,
    change: Contract.EndUserChange,
    by?: RequestCredential,
  ): Promise<Result<Contract.PutEndUserAnswer>> {
    return changeBy(this.#gate, by, (tx) => endUsers.putEndUser(tx, externalId, change));
  }

  async patchEndUser(
    externalId: string,
    change: Contract.EndUserChange,
    by?: RequestCredential,
  ): Promise<Result<Contract.EndUserRecord>> {
    return changeBy(this.#gate, by, (tx) => endUsers.patchEndUser(tx, externalId, change));
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
    return changeBy(this.#gate, by, (tx) => endUsers.deleteEndUser(tx, externalId));
  }

  async readSettings(): Promise<Result<SettingsAnswer>> {
    return this.#decisions.decide((tx) => settings.readSettings(tx));
  }

  async patchSettings(
    change: SettingsChange,
    by?: RequestCredential,
    actor?: Actor,
  ): Promise<Result<SettingsAnswer>> {
    return changeBy(this.#gate, by, (tx) => settings.patchSettings(tx, change, actor));
  }

  async request(id: string): Promise<Result<Contract.RequestRecord>> {
    return this.#decisions.decide((tx) => reads.readRequest(tx, id));
  }

  async requests(query: Contract.RequestQuery): Promise<Result<Contract.RequestPage>> {
    return this.#decisions.decide((tx) => reads.readRequests(tx, query));
  }

  async noteFailed(batch: FailedBatch): Promise<Result<null>> {
    return this.#decisions.decide((tx) => noteFailed(tx, batch));
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

  async poke(): Promise<Result<Contract.Vitals>> {
    const before = this.#decisions.tryOpen();
    if (before === null) return unavailable();
    await this.#work(isUnpublished(before.memory) || before.memory.row.conflict !== null);
    await this.takeEvents(); // after a publish, which selects its rows synchronously
    const tx = this.#decisions.tryOpen();
    return tx === null ? unavailable() : success(vitalsOf(tx));
  }

  reconcile(request: ReconcileAsk = {}): Promise<Result<Reconciliation>> {
    return reconcile(this.#decisions, this.env.DB, request);
  }

  rebuild(orgId: string, actor: Actor = SYSTEM): Promise<Result<Contract.BalanceAnswer>> {
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

  async #rebuild(orgId: string, actor: Actor): Promise<Result<Contract.BalanceAnswer>> {
    const head = await readSnapshotHead(this.env.DB, orgId);
    const before = this.#decisions.openIfMade();
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
    const isNew = this.#decisions.openIfMade() === null;
    try {
      return this.ctx.storage.transactionSync(() => {
        if (isNew) this.#createTables(orgId, snapshot.head.epoch);
        return this.#decisions.decide((tx) => {
          const refused = adoptSnapshot(tx, snapshot, { isNew, actor });
          if (refused !== null) return refused;
          this.#gate.keys.unlearn(tx);
          this.#decisions.load();
          return success(balanceOf(this.#decisions.open()));
        });
      });
    } catch (error) {
      if (isNew) this.#decisions.forget(); // the wallet wasn't created
      throw error;
    } finally {
      deleteCopy(this.ctx.storage.sql);
    }
  }

  #createTables(orgId: string, epoch: string): void {
    makeWallet(this.ctx.storage, { orgId, epoch, nowMs: now(this.env) });
    this.#decisions.load();
  }

  /**
   * Runs due work. Sets the next alarm last, because an alarm that is set earlier would run
   * immediately. `mustPublish` publishes without waiting and checks for a conflict again.
   */
  async #work(mustPublish: boolean): Promise<void> {
    const { schedule } = this.#decisions;
    this.#decisions.turn((tx) => {
      if (schedule.isRetentionDue(tx)) schedule.endRetention(tx, deleteExpired(tx));
      measureStorage(tx);
      this.#gate.keys.findUses(tx);
      return success(null);
    });
    const isDue = schedule.isPublishDue(this.#decisions.open().nowMs);
    if ((mustPublish || isDue) && !schedule.isPublishing) await this.#publish();
    const tx = this.#decisions.openIfMade();
    if (tx !== null) this.#decisions.schedule.arm(tx);
  }

  async #publish(): Promise<void> {
    this.#decisions.schedule.startPublish();
    const live = (): Tx | null => this.#decisions.openIfMade();
    let eventsWait = true;
    try {
      const reported = await publish(this.#decisions.open(), live);
      this.#gate.keys.noted(live(), reported);
      ({ eventsWait } = reported);
    } catch (error) {
      logWarning("publish_failed", { reason: reasonOf(error) });
    } finally {
      this.#decisions.schedule.endPublish(now(this.env));
    }
    if (eventsWait) await this.takeEvents();
    else flushFinishedHours(this.#decisions);
    this.#notify();
  }

  #notify(): void {
    this.ctx.waitUntil(this.#webhookFeed.tell());
    this.ctx.waitUntil(notifyTopUp(this.#decisions, this.env));
  }
}
