import { PURCHASE_ID_PREFIX } from "../../src/shared/contracts/payments.ts";
import type {
  AutoTopUpSettings,
  TopUpDisabledReason,
  PaymentReversal,
  PaymentCredit,
  PurchaseOutcome,
} from "../../src/shared/contracts/payments.ts";
import { refuse, success } from "../../src/shared/failure.ts";
import type { Result } from "../../src/shared/failure.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import type { Micros } from "../../src/shared/money.ts";
import type { WalletForPayments } from "../../src/money/payments/purchase.ts";
import {
  collectDebt,
  forgiveDebt,
  applyRefund,
  NO_DEBTS,
} from "../../src/money/wallet/rules/debts.ts";
import type { CreditedPayment, Debts } from "../../src/money/wallet/rules/debts.ts";
import {
  completeTopUp,
  decideTopUp,
  enableTopUp,
  recordFailedTopUp,
  INITIAL_TOP_UP_STATE,
  recordTopUpRequest,
} from "../../src/money/wallet/rules/top-up.ts";
import type { TopUpState } from "../../src/money/wallet/rules/top-up.ts";

/** A wallet's stored money. It is an immutable value, so that the database's copy is one. */
type Stored = {
  readonly balance: Micros;
  /** Amounts of credits by reference. */
  readonly references: ReadonlyMap<string, number>;
  readonly charges: number;
  readonly debts: Debts;
  readonly payments: ReadonlyMap<string, CreditedPayment>;
  readonly topUp: TopUpState;
  readonly setting: AutoTopUpSettings | null;
};

const EMPTY: Stored = {
  balance: micros(0),
  references: new Map(),
  charges: 0,
  debts: NO_DEBTS,
  payments: new Map(),
  topUp: INITIAL_TOP_UP_STATE,
  setting: null,
};

/**
 * A wallet in memory with the real rules for credits, debts, holds and automatic purchases, in
 * order of transactions.
 */
export class PlainWallet implements WalletForPayments {
  stored: Stored = EMPTY;
  readonly holds: number[] = [];
  madeAt = 1;
  /** The number of calls that fail without a response from now on. */
  down = 0;
  #book: Stored = EMPTY;
  readonly #now: () => number;
  /** False for a faulty wallet that doesn't collect debts. */
  readonly #collects: boolean;

  constructor(now: () => number, collects = true) {
    this.#now = now;
    this.#collects = collects;
  }

  get held(): number {
    return this.holds.reduce((sum, amount) => sum + amount, 0);
  }

  async creditPayment(credit: PaymentCredit): Promise<Result<{ readonly madeAt: number }>> {
    return this.#turn(() => {
      const { paymentId, purchaseId, netMicro } = credit;
      const before = this.stored.references.get(`stripe:${paymentId}`);
      if (before !== undefined && before !== netMicro) {
        return refuse({ kind: "conflict", message: "another amount", param: null });
      }
      if (before === undefined) this.#post(`stripe:${paymentId}`, netMicro);
      const known = this.stored.payments.get(paymentId);
      const fresh: CreditedPayment = {
        id: paymentId,
        purchaseId,
        credited: netMicro,
        refunded: micros(0),
        reading: 0,
      };
      this.#putPayment(known ?? fresh);
      this.#set({ topUp: completeTopUp(this.stored.topUp, purchaseId) });
      return success({ madeAt: this.madeAt });
    });
  }

  async setBack(reversal: PaymentReversal): Promise<Result<null>> {
    return this.#turn(() => {
      const payment = this.stored.payments.get(reversal.paymentId);
      if (payment === undefined) return refuse({ kind: "not_found", message: "no such payment" });
      const target = { back: reversal.backMicro, reading: reversal.reading };
      const moved = applyRefund(this.stored.debts, payment, target);
      if (moved === null) return success(null);
      if (moved.returned > 0) {
        this.#post(`stripe:${payment.id}:back:${reversal.reading}`, moved.returned);
      }
      this.#putPayment(moved.payment);
      this.#set({ debts: moved.debts });
      if (reversal.isDisputed && moved.payment.refunded > payment.refunded) {
        this.#disable("disputed");
      }
      return success(null);
    });
  }

  async tellPurchase({ topUp }: PurchaseOutcome): Promise<Result<null>> {
    return this.#turn(() => {
      if (topUp === null) return success(null);
      const before = this.stored.topUp;
      const after = recordFailedTopUp(before, topUp.id, { end: topUp.end, nowMs: this.#now() });
      this.#set({ topUp: after });
      if (after.disabledReason !== null && after !== before) this.#disable(after.disabledReason);
      return success(null);
    });
  }

  async disableTopUp(reason: TopUpDisabledReason): Promise<Result<null>> {
    return this.#turn(() => {
      this.#disable(reason);
      return success(null);
    });
  }

  /** Null disables automatic purchases. */
  set(setting: AutoTopUpSettings | null): void {
    const topUp = setting === null ? this.stored.topUp : enableTopUp(this.stored.topUp);
    this.#set({ setting, topUp });
    this.endTurn();
  }

  /** Holds at most the available amount. A rejection can request a purchase. */
  hold(amount: number): void {
    const free = this.stored.balance - this.held;
    if (this.stored.debts.owed > 0) return;
    if (amount > free) this.#topUpIfDue(true);
    else this.holds.push(amount);
    this.endTurn();
  }

  settle(index: number, share: number): void {
    const [held = 0] = this.holds.splice(index, 1);
    const charged = Math.floor(held * share);
    const { balance, charges } = this.stored;
    this.#set({ balance: micros(balance - charged), charges: charges + charged });
    this.endTurn();
  }

  forgive(amount: number): void {
    const debts = forgiveDebt(this.stored.debts, micros(amount));
    if (debts.ok) this.#set({ debts: debts.value });
    this.endTurn();
  }

  publish(): void {
    this.#book = this.stored;
  }

  /** Rebuilds a lost wallet from the database. */
  rebuild(): void {
    this.holds.length = 0;
    this.madeAt += 1;
    this.stored = {
      ...this.#book,
      setting: null,
      topUp: { ...INITIAL_TOP_UP_STATE, disabledReason: "wallet_rebuilt" },
    };
    this.endTurn();
  }

  /**
   * Ends a transaction: available credits pay debts, then a purchase is requested if one is due.
   */
  endTurn(): void {
    const { balance, debts } = this.stored;
    const collected = this.#collects ? collectDebt(debts, micros(balance - this.held)) : null;
    if (collected !== null) {
      this.#post(`owed:${this.stored.references.size}`, 0 - collected.paid);
      this.#set({ debts: collected.debts });
    }
    this.#topUpIfDue(false);
  }

  #turn<T>(decision: () => Result<T>): Result<T> {
    if (this.down > 0) {
      this.down -= 1;
      return refuse({ kind: "storage_unavailable" });
    }
    const answer = decision();
    this.endTurn();
    return answer;
  }

  #topUpIfDue(isShort: boolean): void {
    const { topUp, balance, debts, setting } = this.stored;
    const nowMs = this.#now();
    const day = new Date(nowMs).toISOString().slice(0, 10);
    const month = day.slice(0, 7);
    const days = { month, day, dailyMaxMicros: Infinity };
    const input = { setting, balance, owed: debts.owed, isShort, nowMs, ...days };
    if (setting === null || decideTopUp(topUp, input) !== "wanted") return;
    const order = { id: mintId(PURCHASE_ID_PREFIX, nowMs), amountMicro: setting.amountMicro };
    this.#set({ topUp: recordTopUpRequest(topUp, { ...order, wantedAt: nowMs }, days) });
  }

  #disable(reason: TopUpDisabledReason): void {
    if (this.stored.setting === null) return;
    this.#set({ setting: null, topUp: { ...this.stored.topUp, disabledReason: reason } });
  }

  #post(reference: string, amount: number): void {
    const { references, balance } = this.stored;
    if (references.has(reference)) throw new Error(`${reference} is credited twice`);
    const after = new Map(references).set(reference, amount);
    this.#set({ references: after, balance: micros(balance + amount) });
  }

  #putPayment(payment: CreditedPayment): void {
    this.#set({ payments: new Map(this.stored.payments).set(payment.id, payment) });
  }

  #set(change: Partial<Stored>): void {
    this.stored = { ...this.stored, ...change };
  }
}
