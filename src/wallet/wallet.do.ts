import { DurableObject } from "cloudflare:workers";
import { assert } from "../lib/assert.ts";
import { now } from "../lib/clock.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { forgetWallet, readBookHead, readBookRows } from "./book.store.ts";
import { credit } from "./credit.do.ts";
import { balanceOf } from "./desk.do.ts";
import type { Desk } from "./desk.do.ts";
import * as endUsers from "./end-users.do.ts";
import { hold } from "./hold.do.ts";
import { makeWallet, wasUsed } from "./lifecycle.do.ts";
import { loadMemory } from "./memory.do.ts";
import type { Memory } from "./memory.do.ts";
import { expire, settle, voidHold } from "./outcome.do.ts";
import { publish } from "./publish.do.ts";
import { readAlerts, readGeneration, readLedger, readUsage } from "./reads.do.ts";
import { adoptBook } from "./rebuild.do.ts";
import { reconcile } from "./reconcile.do.ts";
import { retain } from "./retention.do.ts";
import { Schedule } from "./schedule.do.ts";
import * as settings from "./settings.do.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { migrate, walletExists } from "./wallet-schema.do.ts";
import type * as Contract from "./wallet-contract.ts";

/**
 * An organisation's credits and its end users' quotas: the only writer of money. Named by the
 * organisation's id. Every decision is one synchronous turn against its own tables; the calls are
 * described in `WalletCalls`.
 */
export class Wallet extends DurableObject<Env> implements Contract.WalletCalls {
  /** Null while no wallet was made here. */
  #memory: Memory | null = null;
  #schedule = new Schedule(null);
  #isPublishing = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      if (!walletExists(ctx.storage.sql)) return;
      migrate(ctx.storage);
      this.#schedule = new Schedule(await ctx.storage.getAlarm());
      this.#load();
    });
  }

  async create(orgId: string): Promise<{ readonly epoch: string }> {
    if (this.#memory === null) {
      makeWallet(this.ctx.storage, { orgId, epoch: crypto.randomUUID(), nowMs: now(this.env) });
      this.#load();
    }
    const { row } = this.#open().memory;
    assert(row.orgId === orgId, "a wallet belongs to one organisation");
    return { epoch: row.epoch };
  }

  async discard(): Promise<boolean> {
    if (this.#memory === null) return true;
    if (wasUsed(this.ctx.storage.sql)) return false;
    const { orgId, epoch } = this.#memory.row;
    this.#memory = null;
    this.#schedule = new Schedule(null);
    await this.ctx.storage.deleteAll();
    await forgetWallet(this.env.DB, orgId, epoch);
    return true;
  }

  async hold(request: Contract.HoldRequest): Promise<Result<Contract.HoldGrant>> {
    return this.#decide((desk) =>
      desk.memory.row.conflict === null
        ? hold(desk, request)
        : refuse({ kind: "storage_unavailable" }),
    );
  }

  async settle(settlement: Contract.Settlement): Promise<Result<Contract.SettleAnswer>> {
    return this.#decide((desk) => settle(desk, settlement));
  }

  async void(id: string): Promise<Result<Contract.VoidAnswer>> {
    return this.#decide((desk) => voidHold(desk, id));
  }

  async credit(request: Contract.CreditRequest): Promise<Result<Contract.BalanceAnswer>> {
    return this.#decide((desk) => credit(desk, request));
  }

  async balance(): Promise<Result<Contract.BalanceAnswer>> {
    return this.#decide((desk) => success(balanceOf(desk)));
  }

  async configure(change: Contract.ConfigurationChange): Promise<Result<Contract.Configuration>> {
    return this.#decide((desk) => settings.configure(desk, change));
  }

  async putEndUser(
    externalId: string,
    change: Contract.EndUserChange,
  ): Promise<Result<Contract.PutEndUserAnswer>> {
    return this.#decide((desk) => endUsers.putEndUser(desk, externalId, change));
  }

  async patchEndUser(
    externalId: string,
    change: Contract.EndUserChange,
  ): Promise<Result<Contract.EndUserRecord>> {
    return this.#decide((desk) => endUsers.patchEndUser(desk, externalId, change));
  }

  async readEndUser(externalId: string): Promise<Result<Contract.EndUserRecord>> {
    return this.#decide((desk) => endUsers.readEndUser(desk, externalId));
  }

  async listEndUsers(limit: number, offset: number): Promise<Result<Contract.EndUserPage>> {
    return this.#decide((desk) => endUsers.listEndUsers(desk, limit, offset));
  }

  async deleteEndUser(externalId: string): Promise<Result<{ readonly externalId: string }>> {
    return this.#decide((desk) => endUsers.deleteEndUser(desk, externalId));
  }

  async readSettings(): Promise<Result<Contract.SettingsRecord>> {
    return this.#decide((desk) => settings.readSettings(desk));
  }

  async patchSettings(change: Contract.SettingsChange): Promise<Result<Contract.SettingsRecord>> {
    return this.#decide((desk) => settings.patchSettings(desk, change));
  }

  async ledger(afterSeq: number, limit: number): Promise<Result<Contract.LedgerPage>> {
    return this.#decide((desk) => readLedger(desk, afterSeq, limit));
  }

  async generation(id: string): Promise<Result<Contract.GenerationRecord>> {
    return this.#decide((desk) => readGeneration(desk, id));
  }

  async usage(
    from: string,
    to: string,
    groupBy: Contract.UsageGroupBy,
  ): Promise<Result<Contract.UsageReport>> {
    return this.#decide((desk) => readUsage(desk, { from, to }, groupBy));
  }

  async alerts(limit: number, offset: number): Promise<Result<Contract.AlertPage>> {
    return this.#decide((desk) => readAlerts(desk, limit, offset));
  }

  async poke(): Promise<Result<null>> {
    if (this.#memory === null) return unmade();
    await this.#work(this.#memory.changed || this.#memory.row.conflict !== null);
    return success(null);
  }

  async reconcile(): Promise<Result<Contract.Reconciliation>> {
    if (this.#memory === null) return unmade();
    const { orgId } = this.#memory.row;
    const book = await readBookHead(this.env.DB, orgId).catch(() => null);
    return this.#decide((desk) => success(reconcile(desk, book)));
  }

  async rebuild(orgId: string): Promise<Result<Contract.BalanceAnswer>> {
    const book = await readBookRows(this.env.DB, orgId);
    if (book === null) return refuse({ kind: "not_found", message: "The book has no balance." });
    if (this.#memory === null) {
      makeWallet(this.ctx.storage, { orgId, epoch: book.head.epoch, nowMs: now(this.env) });
      this.#load();
    }
    return this.#decide((desk) => {
      const refused = adoptBook(desk, book);
      if (refused !== null) return refused;
      this.#load();
      return success(balanceOf(this.#open()));
    });
  }

  /** Expiry, publish and retention, then the next alarm. What fails is due again by itself. */
  override async alarm(): Promise<void> {
    this.#schedule.alarmRan();
    if (this.#memory !== null) await this.#work(false);
  }

  /** Does what is due; `mustPublish` does not wait for it, and looks at a foreign book again. */
  async #work(mustPublish: boolean): Promise<void> {
    this.#decide((desk) => {
      if (this.#schedule.retainIsDue(desk)) this.#retain(desk);
      return success(null);
    });
    const isDue = this.#schedule.publishIsDue(this.#open().nowMs);
    if ((mustPublish || isDue) && !this.#isPublishing) await this.#publish();
    if (this.#memory !== null) this.#schedule.arm(this.#open());
  }

  #retain(desk: Desk): void {
    if (retain(desk)) return; // more of it: still due, so the alarm comes at once
    this.#schedule.refresh(desk);
  }

  async #publish(): Promise<void> {
    this.#isPublishing = true;
    const live = (): Desk | null => (this.#memory === null ? null : this.#open());
    try {
      const outcome = await publish(this.#open(), live);
      if (outcome === "again" && this.#memory !== null) await publish(this.#open(), live);
    } catch (error) {
      logWarning("publish_failed", { reason: reasonOf(error) });
    } finally {
      this.#isPublishing = false;
      this.#schedule.published(now(this.env));
    }
  }

  /** One decision in one turn. A throw may have left the memory ahead of the tables: start again. */
  #decide<T>(decision: (desk: Desk) => Result<T>): Result<T> {
    if (this.#memory === null) return unmade();
    try {
      const desk = this.#open();
      expire(desk);
      const answer = decision(desk);
      this.#schedule.arm(this.#open());
      return answer;
    } catch (error) {
      this.#load();
      throw error;
    }
  }

  #open(): Desk {
    const memory = this.#memory;
    assert(memory !== null, "the wallet is made");
    const clockMs = now(this.env);
    memory.clock = Math.max(memory.clock, clockMs);
    const { storage } = this.ctx;
    return { storage, sql: storage.sql, memory, env: this.env, nowMs: memory.clock, clockMs };
  }

  #load(): void {
    this.#memory = loadMemory(this.ctx.storage.sql, now(this.env));
    const desk = this.#open();
    this.#schedule.refresh(desk);
    this.#schedule.arm(desk);
  }
}

function unmade(): Refusal {
  return refuse({ kind: "storage_unavailable" });
}
