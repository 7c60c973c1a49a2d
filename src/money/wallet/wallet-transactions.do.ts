import { DurableObject } from "cloudflare:workers";
import type { RequestCredential } from "../../shared/caller.ts";
import type { WalletCalls } from "../../shared/contracts/wallet.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { applyCallerChange, createGate } from "./object/admission.do.ts";
import type { Gate } from "./object/admission.do.ts";
import { readBalance } from "./object/reads.do.ts";
import * as reads from "./object/reads.do.ts";
import { budgetStatusesOf, setBudgets } from "./object/budgets.do.ts";
import { foldCharges, readCharges } from "./object/charges.do.ts";
import { readCosts } from "./object/costs.do.ts";
import { Decisions } from "./object/decisions.do.ts";
import * as endUsers from "./object/end-users.do.ts";
import * as failures from "./object/failures.do.ts";
import { readProviderCalls } from "./object/failures.do.ts";
import { assertCurrentInstance } from "./object/memory.do.ts";
import type { Tx } from "./object/memory.do.ts";
import * as pauses from "./object/pauses.do.ts";
import * as payments from "./object/payments.do.ts";
import { changeHold, readPlacedHold } from "./object/placed-holds.do.ts";
import * as policies from "./object/policies.do.ts";
import { creditBalance, settle, voidHold } from "./object/postings.do.ts";
import { readRequestUsage } from "./object/request-usage.do.ts";
import { endSessionForCaller, listSessions } from "./object/sessions.do.ts";
import * as settings from "./object/settings.do.ts";
import { disableTopUp } from "./object/top-up.do.ts";
import { readUsageStream } from "./object/usage-stream.do.ts";
import { readUsage } from "./object/usage.do.ts";
import { selectUsedKey } from "./tables/key-rows.do.ts";

const BATCHES_MAX = 50;

export type Args<Call extends keyof WalletCalls> = Parameters<WalletCalls[Call]>;

/** Calls of the wallet that run as one transaction each. `WalletCalls` documents the calls. */
export abstract class WalletTransactions extends DurableObject<Env> {
  protected readonly decisions: Decisions;
  protected readonly gate: Gate;
  protected abstract readonly notify: () => void;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.decisions = new Decisions(
      ctx.storage,
      () => this.env,
      () => this.notify(),
    );
    this.gate = createGate(this.decisions, ctx, () => this.env);
  }

  async settle(...args: Args<"settle">) {
    return this.decisions.decide(settle, ...args);
  }

  async void(...args: Args<"void">) {
    return this.decisions.decide(voidHold, ...args);
  }

  async placedHold(...args: Args<"placedHold">) {
    return this.decisions.decide(readPlacedHold, ...args);
  }

  async changeHold(...[change, called]: Args<"changeHold">) {
    return this.#change(called ?? undefined, (tx) => changeHold(tx, change));
  }

  async credit(...args: Args<"credit">) {
    return this.decisions.decide(creditBalance, ...args);
  }

  async balance() {
    return this.decisions.decide((tx) => {
      assertCurrentInstance(tx);
      return success(readBalance(tx));
    });
  }

  async configure(...args: Args<"configure">) {
    return this.decisions.decide(settings.configure, ...args);
  }

  async readSettings() {
    return this.decisions.decide(settings.readSettings);
  }

  async patchSettings(...[change, by, actor]: Args<"patchSettings">) {
    return applyCallerChange(this.gate, by, (tx) => settings.patchSettings(tx, change, actor));
  }

  async setOperatorPolicy(...args: Args<"setOperatorPolicy">) {
    return this.decisions.decide(policies.setOperatorPolicy, ...args);
  }

  async memberLimits(...args: Args<"memberLimits">) {
    return this.decisions.decide(policies.readMemberLimits, ...args);
  }

  async setMemberLimits(...[memberId, change, by]: Args<"setMemberLimits">) {
    return applyCallerChange(this.gate, by, (tx) => policies.setMemberLimits(tx, memberId, change));
  }

  async forgetMember(...args: Args<"forgetMember">) {
    return this.decisions.decide(pauses.removeMemberLimits, ...args);
  }

  async budgets(...[owner]: Args<"budgets">) {
    return this.decisions.decide((tx) => success(budgetStatusesOf(tx, owner)));
  }

  async setBudgets(...[{ owner, budgets }, by]: Args<"setBudgets">) {
    return applyCallerChange(this.gate, by, (tx) => {
      setBudgets(tx, owner, budgets);
      return success(budgetStatusesOf(tx, owner));
    });
  }

  async putPause(...[pause, by]: Args<"putPause">) {
    return this.#change(by, (tx) => pauses.putPause(tx, pause));
  }

  async pauses(...args: Args<"pauses">) {
    return this.decisions.decide(pauses.listPauses, ...args);
  }

  async endPause(...[ending, by]: Args<"endPause">) {
    return this.#change(by, (tx) => pauses.endPause(tx, ending));
  }

  async putEndUser(...[externalId, change, by]: Args<"putEndUser">) {
    return applyCallerChange(this.gate, by, (tx) => endUsers.putEndUser(tx, externalId, change));
  }

  async patchEndUser(...[externalId, change, by]: Args<"patchEndUser">) {
    return applyCallerChange(this.gate, by, (tx) => endUsers.patchEndUser(tx, externalId, change));
  }

  async readEndUser(...args: Args<"readEndUser">) {
    return this.decisions.decide(endUsers.readEndUser, ...args);
  }

  async listEndUsers(...args: Args<"listEndUsers">) {
    return this.decisions.decide(endUsers.listEndUsers, ...args);
  }

  async deleteEndUser(...[externalId, by]: Args<"deleteEndUser">) {
    return applyCallerChange(this.gate, by, (tx) => endUsers.deleteEndUser(tx, externalId));
  }

  async eraseEndUsers() {
    return this.decisions.decide(endUsers.eraseEndUsers);
  }

  async keyOf(...[keyId]: Args<"keyOf">) {
    return this.decisions.decide((tx) => success(selectUsedKey(tx.sql, keyId)));
  }

  async sessions(...[query]: Args<"sessions">) {
    return this.decisions.decide((tx) => success(listSessions(tx, query)));
  }

  async endSession(...args: Args<"endSession">) {
    return this.decisions.decide(endSessionForCaller, ...args);
  }

  async creditPayment(...args: Args<"creditPayment">) {
    return this.decisions.decide(payments.creditPayment, ...args);
  }

  async setBack(...args: Args<"setBack">) {
    return this.decisions.decide(payments.recordRefund, ...args);
  }

  async tellPurchase(...args: Args<"tellPurchase">) {
    return this.decisions.decide(payments.recordPurchaseOutcome, ...args);
  }

  async disableTopUp(...[reason]: Args<"disableTopUp">) {
    return this.decisions.decide((tx) => {
      disableTopUp(tx, reason);
      return success(null);
    });
  }

  async forgive(...args: Args<"forgive">) {
    return this.decisions.decide(payments.forgiveOwed, ...args);
  }

  async payments() {
    return this.decisions.decide((tx) => {
      assertCurrentInstance(tx);
      return success(payments.paymentsStatus(tx));
    });
  }

  async creditPage(...args: Args<"creditPage">) {
    return this.decisions.decide(payments.readCredits, ...args);
  }

  async ledger(...args: Args<"ledger">) {
    return this.decisions.decide(reads.readLedger, ...args);
  }

  async newestLedger(...args: Args<"newestLedger">) {
    return this.decisions.decide(reads.readNewestLedger, ...args);
  }

  async holds(...args: Args<"holds">) {
    return this.decisions.decide(reads.readHolds, ...args);
  }

  async alerts(...args: Args<"alerts">) {
    return this.decisions.decide(reads.readAlerts, ...args);
  }

  async request(...args: Args<"request">) {
    return this.decisions.decide(reads.readRequest, ...args);
  }

  async requests(...args: Args<"requests">) {
    return this.decisions.decide(reads.readRequests, ...args);
  }

  async noteFailed(...args: Args<"noteFailed">) {
    return this.decisions.decide(failures.storeFailures, ...args);
  }

  async failures(...args: Args<"failures">) {
    return this.decisions.decide(failures.readFailures, ...args);
  }

  async keptFailures(...[query]: Args<"keptFailures">) {
    return this.decisions.decide((tx) => success(failures.readStoredFailures(tx, query)));
  }

  async costs(...[query]: Args<"costs">) {
    return this.decisions.decide((tx) => success(readCosts(tx, query)));
  }

  async providerCalls(...[fromMs]: Args<"providerCalls">) {
    return this.decisions.decide((tx) => success(readProviderCalls(tx, fromMs)));
  }

  async usage(...[from, to, groupBy, page]: Args<"usage">) {
    return this.decisions.decide((tx) => readUsage(tx, { from, to, groupBy }, page));
  }

  async usageOfRows(...[query]: Args<"usageOfRows">) {
    return this.decisions.decide((tx) => success(readRequestUsage(tx, query)));
  }

  async usageByMember(...[query]: Args<"usageByMember">) {
    return this.usageOfRows(query);
  }

  async usageStream(...args: Args<"usageStream">) {
    return this.decisions.decide(readUsageStream, ...args);
  }

  async chargesOfDay(...[query]: Args<"chargesOfDay">): ReturnType<WalletCalls["chargesOfDay"]> {
    for (let batches = 0; batches < BATCHES_MAX; batches++) {
      const folded = this.decisions.decide((tx) => success(foldCharges(tx)));
      if (!folded.ok) return folded;
      if (!folded.value) return this.decisions.decide((tx) => success(readCharges(tx, query)));
    }
    return refuse({ kind: "overloaded" }); // the next call continues
  }

  /** Applies a change. Without a caller, the change also applies to a suspended organization. */
  #change<T>(by: RequestCredential | undefined, decision: (tx: Tx) => Result<T>): Result<T> {
    return by === undefined
      ? this.decisions.decide(decision)
      : applyCallerChange(this.gate, by, decision);
  }
}
