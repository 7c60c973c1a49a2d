import { DurableObject } from "cloudflare:workers";
import type { RequestCredential } from "../../shared/caller.ts";
import type { WalletMethods } from "../../shared/contracts/wallet.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { applyCallerChange, createAdmissionDeps } from "./object/admission.do.ts";
import type { AdmissionDeps } from "./object/admission.do.ts";
import * as reads from "./object/reads.do.ts";
import { budgetStatusesOfOwner, setBudgets } from "./object/budgets.do.ts";
import { foldChargesIntoTotals, readCharges } from "./object/charges.do.ts";
import { readCosts } from "./object/costs.do.ts";
import { Decisions } from "./object/decisions.do.ts";
import * as endUsers from "./object/end-users.do.ts";
import * as failures from "./object/failures.do.ts";
import { assertCurrentInstance } from "./object/memory.do.ts";
import type { Tx } from "./object/memory.do.ts";
import * as pauses from "./object/pauses.do.ts";
import * as payments from "./object/payments.do.ts";
import { changePlacedHold, readPlacedHold } from "./object/placed-holds.do.ts";
import * as policies from "./object/policies.do.ts";
import { creditBalance, settle, voidHold } from "./object/postings.do.ts";
import { readRequestUsage } from "./object/request-usage.do.ts";
import { endSessionForCaller, listSessions } from "./object/sessions.do.ts";
import * as settings from "./object/settings.do.ts";
import { disableTopUp } from "./object/top-up.do.ts";
import { readUsageStream } from "./object/usage-stream.do.ts";
import { readUsage } from "./object/usage.do.ts";
import { selectKeyRecordById } from "./tables/key-rows.do.ts";

const BATCHES_MAX = 50;

export type WalletCallArguments<Call extends keyof WalletMethods> = Parameters<WalletMethods[Call]>;
type Transactions = {
  readonly [Call in keyof WalletMethods]: (
    tx: Tx,
    ...args: WalletCallArguments<Call>
  ) => Awaited<ReturnType<WalletMethods[Call]>>;
};

/** Calls of the wallet, each with the function that runs in its transaction. */
const TRANSACTIONS = {
  settle,
  void: voidHold,
  placedHold: readPlacedHold,
  credit: creditBalance,
  balance: (tx) => {
    assertCurrentInstance(tx);
    return success(reads.readBalance(tx));
  },
  configure: settings.applyConfiguration,
  readSettings: settings.readSettings,
  setOperatorPolicy: policies.setOperatorPolicy,
  memberLimits: policies.readMemberLimits,
  forgetMember: policies.removeMemberLimits,
  budgets: (tx, owner) => success(budgetStatusesOfOwner(tx, owner)),
  pauses: pauses.listPauses,
  readEndUser: endUsers.readEndUser,
  listEndUsers: endUsers.listEndUsers,
  eraseEndUsers: endUsers.eraseEndUsers,
  keyOf: ({ sql }, keyId) => success(selectKeyRecordById(sql, keyId)),
  sessions: (tx, query) => success(listSessions(tx, query)),
  endSession: endSessionForCaller,
  creditPayment: payments.creditPayment,
  setBack: payments.recordRefund,
  tellPurchase: payments.recordPurchaseOutcome,
  disableTopUp: (tx, reason) => {
    disableTopUp(tx, reason);
    return success(null);
  },
  forgive: payments.forgiveOwedCredits,
  payments: (tx) => {
    assertCurrentInstance(tx);
    return success(payments.readPaymentsStatus(tx));
  },
  creditPage: payments.readCredits,
  ledger: (tx, afterSeq, limit) => success(reads.readLedger(tx, afterSeq, limit)),
  newestLedger: (tx, beforeSeq, limit) => success(reads.readNewestLedgerRows(tx, beforeSeq, limit)),
  holds: reads.readHolds,
  alerts: reads.readAlerts,
  request: reads.readRequest,
  requests: reads.readRequests,
  noteFailed: failures.storeFailures,
  failures: failures.readFailureReport,
  keptFailures: (tx, query) => success(failures.readStoredFailureReport(tx, query)),
  costs: (tx, query) => success(readCosts(tx, query)),
  providerCalls: (tx, fromMs) => success(failures.readProviderCalls(tx, fromMs)),
  usage: (tx, ...[from, to, groupBy, page]) => readUsage(tx, { from, to, groupBy }, page),
  usageOfRows: (tx, query) => success(readRequestUsage(tx, query)),
  usageByMember: (tx, query) => success(readRequestUsage(tx, query)),
  usageStream: readUsageStream,
} satisfies Partial<Transactions>;

abstract class TransactionBase extends DurableObject<Env> {
  protected readonly decisions: Decisions;
  protected readonly gate: AdmissionDeps;
  protected abstract readonly notify: () => void;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.decisions = new Decisions(
      ctx.storage,
      () => this.env,
      () => this.notify(),
    );
    this.gate = createAdmissionDeps(this.decisions, ctx, () => this.env);
  }

  async changeHold(...[change, called]: WalletCallArguments<"changeHold">) {
    return this.#change(called ?? undefined, (tx) => changePlacedHold(tx, change));
  }

  async patchSettings(...[change, by, actor]: WalletCallArguments<"patchSettings">) {
    return applyCallerChange(this.gate, by, (tx) => settings.patchSettings(tx, change, actor));
  }

  async setMemberLimits(...[memberId, change, by]: WalletCallArguments<"setMemberLimits">) {
    return applyCallerChange(this.gate, by, (tx) => policies.setMemberLimits(tx, memberId, change));
  }

  async setBudgets(...[{ owner, budgets }, by]: WalletCallArguments<"setBudgets">) {
    return applyCallerChange(this.gate, by, (tx) => {
      setBudgets(tx, owner, budgets);
      return success(budgetStatusesOfOwner(tx, owner));
    });
  }

  async putPause(...[pause, by]: WalletCallArguments<"putPause">) {
    return this.#change(by, (tx) => pauses.putPause(tx, pause));
  }

  async endPause(...[ending, by]: WalletCallArguments<"endPause">) {
    return this.#change(by, (tx) => pauses.endPause(tx, ending));
  }

  async putEndUser(...[externalId, change, by]: WalletCallArguments<"putEndUser">) {
    return applyCallerChange(this.gate, by, (tx) => endUsers.putEndUser(tx, externalId, change));
  }

  async patchEndUser(...[externalId, change, by]: WalletCallArguments<"patchEndUser">) {
    return applyCallerChange(this.gate, by, (tx) => endUsers.patchEndUser(tx, externalId, change));
  }

  async deleteEndUser(...[externalId, by]: WalletCallArguments<"deleteEndUser">) {
    return applyCallerChange(this.gate, by, (tx) => endUsers.deleteEndUser(tx, externalId));
  }

  async chargesOfDay(
    ...[query]: WalletCallArguments<"chargesOfDay">
  ): ReturnType<WalletMethods["chargesOfDay"]> {
    for (let batches = 0; batches < BATCHES_MAX; batches++) {
      const folded = this.decisions.decide((tx) => success(foldChargesIntoTotals(tx)));
      if (!folded.ok) return folded;
      if (!folded.value) return this.decisions.decide((tx) => success(readCharges(tx, query)));
    }
    return refuse({ kind: "overloaded" }); // a retry adds the remaining charges
  }

  /** Applies a change. Without a caller, the change also applies to a suspended organization. */
  #change<T>(by: RequestCredential | undefined, decision: (tx: Tx) => Result<T>): Result<T> {
    return by === undefined
      ? this.decisions.decide(decision)
      : applyCallerChange(this.gate, by, decision);
  }
}

// RPC can call only methods of the prototype.
for (const [name, transaction] of Object.entries(TRANSACTIONS)) {
  Object.defineProperty(TransactionBase.prototype, name, {
    async value(this: TransactionBase, ...args: never[]) {
      return this.decisions.decide<unknown, never[]>(transaction, ...args);
    },
  });
}

/** Base class with each wallet method that is a single transaction. */
export const WalletTransactions = TransactionBase as abstract new (
  ctx: DurableObjectState,
  env: Env,
) => TransactionBase & Pick<WalletMethods, keyof typeof TRANSACTIONS>;
