import type { StoredFailureQuery, StoredFailureReport } from "../../shared/failed-request.ts";
import { readStoredFailures } from "./object/failures.do.ts";
import { DurableObject } from "cloudflare:workers";
import type {
  CreditPage,
  DisabledReason,
  PaymentReversal,
  PaymentCredit,
  PaymentsStatus,
  PurchaseOutcome,
  WalletPaymentCalls,
} from "../../shared/contracts/payments.ts";
import type { RequestCredential } from "../../shared/caller.ts";
import type { HoldChange, PlacedHold } from "../../shared/contracts/holds.ts";
import type { HoldRequest } from "../../shared/contracts/wallet.ts";
import { applyCallerChange, findStoppedRuns, placeClientHold } from "./object/admission.do.ts";
import type { Gate } from "./object/admission.do.ts";
import { eraseEndUsers } from "./object/end-users.do.ts";
import { changeHold, readPlacedHold } from "./object/placed-holds.do.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Actor } from "../../shared/event.ts";
import type { Result } from "../../shared/failure.ts";
import type { Decisions } from "./object/decisions.do.ts";
import { assertCurrentInstance } from "./object/memory.do.ts";
import type { Tx } from "./object/memory.do.ts";
import { readProviderCalls } from "./object/provider-calls.do.ts";
import { readCosts } from "./object/costs.do.ts";
import { foldCharges, readCharges } from "./object/charges.do.ts";
import * as reads from "./object/reads.do.ts";
import { readUsageStream } from "./object/usage-stream.do.ts";
import { readUsage } from "./object/usage.do.ts";
import { readRequestUsage } from "./object/request-usage.do.ts";
import { budgetStatusesOf } from "./object/budget-status.do.ts";
import type { BudgetOwner, BudgetStatus } from "../../shared/budgets.ts";
import type * as Contract from "../../shared/contracts/wallet.ts";
import type { ChargesPage, ChargesQuery } from "../../shared/contracts/exports.ts";
import type { StreamPage, StreamQuery } from "../../shared/contracts/usage-stream.ts";
import * as policies from "./object/policies.do.ts";
import type { MemberLimits, MemberLimitsChange } from "../../shared/contracts/limits.ts";
import type * as Pausing from "../../shared/contracts/pauses.ts";
import type { PauseWithOwner } from "../../shared/pauses.ts";
import type { Policy } from "../../shared/policy.ts";
import type * as Reports from "../../shared/contracts/reports.ts";
import * as pauses from "./object/pauses.do.ts";
import * as payments from "./object/payments.do.ts";
import { disableTopUp } from "./object/top-up.do.ts";

const BATCHES_MAX = 50;

/**
 * Calls of the wallet that run as one transaction each. `WalletPaymentCalls` and `WalletCalls`
 * document the calls.
 */
export abstract class WalletTransactions
  extends DurableObject<Env>
  implements WalletPaymentCalls, Pausing.PauseCalls
{
  protected abstract getDecisions(): Decisions;

  protected abstract getGate(): Gate;

  placeHold(
    request: HoldRequest,
    called: RequestCredential,
    isCaptured: boolean,
  ): Promise<Result<PlacedHold>> {
    return placeClientHold(this.getGate(), request, { called, isCaptured });
  }

  async changeHold(
    change: HoldChange,
    called: RequestCredential | null,
  ): Promise<Result<PlacedHold>> {
    return this.#change(called ?? undefined, (tx) => changeHold(tx, change));
  }

  async eraseEndUsers(): Promise<Result<{ readonly more: boolean }>> {
    return this.getDecisions().decide(eraseEndUsers);
  }

  async placedHold(id: string): Promise<Result<PlacedHold>> {
    return this.getDecisions().decide((tx) => readPlacedHold(tx, id));
  }

  async creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>> {
    return this.getDecisions().decide((tx) => payments.creditPayment(tx, credit));
  }

  async setBack(back: PaymentReversal): Promise<Result<null>> {
    return this.getDecisions().decide((tx) => payments.recordRefund(tx, back));
  }

  async tellPurchase(outcome: PurchaseOutcome): Promise<Result<null>> {
    return this.getDecisions().decide((tx) => payments.recordPurchaseOutcome(tx, outcome));
  }

  async disableTopUp(reason: DisabledReason): Promise<Result<null>> {
    return this.getDecisions().decide((tx) => {
      disableTopUp(tx, reason);
      return success(null);
    });
  }

  async forgive(
    request: Parameters<WalletPaymentCalls["forgive"]>[0],
  ): ReturnType<WalletPaymentCalls["forgive"]> {
    return this.getDecisions().decide((tx) => payments.forgiveOwed(tx, request));
  }

  async budgets(owner: BudgetOwner): Promise<Result<readonly BudgetStatus[]>> {
    return this.getDecisions().decide((tx) => success(budgetStatusesOf(tx, owner)));
  }

  async ledger(afterSeq: number, limit: number): Promise<Result<Contract.LedgerPage>> {
    return this.getDecisions().decide((tx) => reads.readLedger(tx, afterSeq, limit));
  }

  async newestLedger(
    beforeSeq: number,
    limit: number,
  ): Promise<Result<readonly Contract.LedgerRow[]>> {
    return this.getDecisions().decide((tx) => reads.readNewestLedger(tx, beforeSeq, limit));
  }

  async holds(query: Parameters<typeof reads.readHolds>[1]): Promise<Result<Contract.HoldsPage>> {
    return this.getDecisions().decide((tx) => reads.readHolds(tx, query));
  }

  async payments(): Promise<Result<PaymentsStatus>> {
    return this.getDecisions().decide((tx) => {
      assertCurrentInstance(tx);
      return success(payments.paymentsStatus(tx));
    });
  }

  async creditPage(limit: number, after: number | null): Promise<Result<CreditPage>> {
    return this.getDecisions().decide((tx) => payments.readCredits(tx, limit, after));
  }

  async costs(query: Reports.CostQuery): Promise<Result<Reports.CostReport>> {
    return this.getDecisions().decide((tx) => success(readCosts(tx, query)));
  }

  async providerCalls(fromMs: number): Promise<Result<Reports.ProviderCallsReport>> {
    return this.getDecisions().decide((tx) => success(readProviderCalls(tx, fromMs)));
  }

  async usageOfRows(query: Reports.RequestSumsQuery): Promise<Result<Reports.RequestSumsReport>> {
    return this.getDecisions().decide((tx) => success(readRequestUsage(tx, query)));
  }

  async usageByMember(query: Reports.RequestSumsQuery): Promise<Result<Reports.RequestSumsReport>> {
    return this.usageOfRows(query);
  }

  async keptFailures(query: StoredFailureQuery): Promise<Result<StoredFailureReport>> {
    return this.getDecisions().decide((tx) => success(readStoredFailures(tx, query)));
  }

  async usageStream(query: StreamQuery): Promise<Result<StreamPage>> {
    return this.getDecisions().decide((tx) => readUsageStream(tx, query));
  }

  async chargesOfDay(query: ChargesQuery): Promise<Result<ChargesPage>> {
    for (let batches = 0; batches < BATCHES_MAX; batches++) {
      const folded = this.getDecisions().decide((tx) => success(foldCharges(tx)));
      if (!folded.ok) return folded;
      if (!folded.value) return this.getDecisions().decide((tx) => success(readCharges(tx, query)));
    }
    return refuse({ kind: "overloaded" }); // the next call continues
  }

  async usage(
    from: string,
    to: string,
    groupBy: Reports.UsageGroupBy,
    page?: Reports.UsagePage,
  ): Promise<Result<Reports.UsageReport>> {
    return this.getDecisions().decide((tx) => readUsage(tx, { from, to, groupBy }, page));
  }

  async memberLimits(memberId: string): Promise<Result<MemberLimits>> {
    return this.getDecisions().decide((tx) => policies.readMemberLimits(tx, memberId));
  }

  async setMemberLimits(
    memberId: string,
    change: MemberLimitsChange & { readonly actor: Actor },
    by?: RequestCredential,
  ): Promise<Result<MemberLimits>> {
    return applyCallerChange(this.getGate(), by, (tx) =>
      policies.setMemberLimits(tx, memberId, change),
    );
  }

  async forgetMember(memberId: string): Promise<Result<null>> {
    return this.getDecisions().decide((tx) => pauses.removeMemberLimits(tx, memberId));
  }

  async setOperatorPolicy(policy: Policy | null, actor: Actor): Promise<Result<Policy | null>> {
    return this.getDecisions().decide((tx) => policies.setOperatorPolicy(tx, policy, actor));
  }

  async putPause(
    pause: Pausing.NewPause,
    by?: RequestCredential,
  ): Promise<Result<Pausing.PutPauseResult>> {
    return this.#change(by, (tx) => pauses.putPause(tx, pause));
  }

  async pauses(reader: Pausing.PauseReader | null): Promise<Result<readonly PauseWithOwner[]>> {
    return this.getDecisions().decide((tx) => pauses.listPauses(tx, reader));
  }

  async endPause(
    ending: Pausing.PauseEnding,
    by?: RequestCredential,
  ): Promise<Result<PauseWithOwner>> {
    return this.#change(by, (tx) => pauses.endPause(tx, ending));
  }

  async watch(runs: readonly Pausing.WatchedRun[]): Promise<Result<readonly Pausing.StoppedRun[]>> {
    return findStoppedRuns(this.getGate(), runs);
  }

  async alerts(limit: number, offset: number): Promise<Result<Reports.AlertPage>> {
    return this.getDecisions().decide((tx) => reads.readAlerts(tx, limit, offset));
  }

  /** Applies a change. Without a caller, the change also applies to a suspended organization. */
  #change<T>(by: RequestCredential | undefined, decision: (tx: Tx) => Result<T>): Result<T> {
    return by === undefined
      ? this.getDecisions().decide(decision)
      : applyCallerChange(this.getGate(), by, decision);
  }
}
