import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../shared/config/config.ts";
import type { Config, PaymentsConfig } from "../../shared/config/config.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { PURCHASE_ID } from "../../shared/contracts/payments.ts";
import type {
  Buying,
  Card,
  Hint,
  PaymentsCalls,
  PurchasePage,
  PurchaseRecord,
  RefundAsk,
  TopUpRequest,
} from "../../shared/contracts/payments.ts";
import { now } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import type { Micros } from "../../shared/money.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { storageFailure } from "../../shared/storage-failure.ts";
import { makeTables, openTables } from "../../shared/tables.do.ts";
import { within } from "../../shared/timers.ts";
import { callWallet } from "./crediting.ts";
import { addCard, addCustomer } from "./customers.store.ts";
import { checkPurchaseLimits } from "./limits.ts";
import { taxOf } from "./payment-rules.ts";
import { PurchaseRunner, newPurchase } from "./purchase-runner.ts";
import { recordOutcomeForWallet } from "./purchase-moves.ts";
import {
  insertName,
  PAYMENT_TABLES,
  paymentRows,
  selectIdempotency,
  selectPurchases,
} from "./payments-rows.do.ts";
import { purchaseTotals, putPurchases } from "./published.store.ts";
import { publishPurchases } from "./publish-purchases.do.ts";
import { isOver, recordOf } from "./purchase.ts";
import type { Purchase } from "./purchase.ts";
import { refundOf } from "./refunding.ts";
import { findRunningCharge } from "./steps.ts";
import { portalParams, post } from "./stripe-calls.ts";
import { portalSchema } from "./stripe-objects.ts";
import { bodyOf, stripeOf } from "./stripe.ts";
import type { PaymentDeps } from "./payment-deps.ts";

const SHOW_MS = 1500;
const CALL_TIMEOUT_MS = 10_000;
/**
 * Interval between checks of unfinished work, in ms. An eviction of the object can interrupt work.
 */
const WATCH_MS = 5000;
const RECENT_MS = 48 * 3_600_000;

export class Payments extends DurableObject<Env> implements PaymentsCalls {
  #machine: PurchaseRunner | null = null;
  #armedFor: number | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.#armedFor = await ctx.storage.getAlarm();
    });
  }

  buy(buying: Buying): Promise<Result<PurchaseRecord>> {
    return this.#answering(async ({ machine, config }) => {
      this.#make(buying.orgId, buying.orgName);
      const made = this.#wanted(buying, config);
      if (!made.ok) return made;
      const working = machine.advance(made.value);
      this.#after(working);
      await within(working, SHOW_MS).catch(() => undefined);
      return this.#shown(made.value);
    });
  }

  async purchase(name: string): Promise<Result<PurchaseRecord>> {
    if (!this.#isMade()) return noSuchPurchase();
    const { rows } = this.#deps();
    const found = rows.purchase(name) ?? rows.purchaseOf(name);
    return found === null ? noSuchPurchase() : this.#shown(found.id);
  }

  async purchases(limit: number, after: string | null): Promise<Result<PurchasePage>> {
    if (!this.#isMade()) return success({ purchases: [], nextAfter: null });
    const found = selectPurchases(this.#sql, limit, after);
    const page = found.slice(0, limit);
    const { rows } = this.#deps();
    const purchases = page.map((one) => recordOf(one, rows.payment(one.paymentId ?? "")));
    const nextAfter = found.length > limit ? (page.at(-1)?.id ?? null) : null;
    return success({ purchases, nextAfter });
  }

  cancel(id: string): Promise<Result<PurchaseRecord>> {
    return this.#answering(async ({ machine }) => {
      if (!this.#isMade()) return noSuchPurchase();
      machine.cancel(id);
      const working = machine.advance(id);
      this.#after(working);
      await within(working, SHOW_MS).catch(() => undefined);
      return this.#shown(id);
    });
  }

  portal(
    buyer: Pick<Buying, "orgId" | "orgName" | "returnUrl">,
  ): Promise<Result<{ readonly url: string }>> {
    return this.#answering(async ({ deps }) => {
      const customer = this.#isMade() ? deps.rows.head().customer : null;
      if (customer === null) {
        const message = "The billing portal is available after the first purchase.";
        return refuse({ kind: "conflict", message, param: null, code: "no_purchases" });
      }
      const params = portalParams(customer.id, buyer.returnUrl);
      const key = `portal:${crypto.randomUUID()}`; // each click creates a new link; no money moves
      const answer = await deps.stripe.ask(post("/v1/billing_portal/sessions", params, key));
      const made = bodyOf(answer, portalSchema);
      if (made !== null) return success({ url: made.url });
      logWarning("portal_not_made", { org_id: buyer.orgId, request_id: answer.requestId });
      return refuse({ kind: answer.kind === "refused" ? "misconfigured" : "storage_unavailable" });
    });
  }

  async savedCard(): Promise<Result<Card | null>> {
    if (!this.#isMade()) return success(null);
    const { card } = paymentRows(this.#sql).head();
    if (card === null) return success(null);
    const { paymentMethod: _, ...shown } = card;
    return success(shown);
  }

  topUp(request: TopUpRequest): Promise<Result<null>> {
    return this.#answering(async ({ machine }) => {
      this.#make(request.orgId, "");
      machine.startTopUp(request);
      this.#after(machine.advance(request.id));
      return success(null);
    });
  }

  hint(hint: Hint): Promise<Result<null>> {
    return this.#answering(async ({ machine }) => {
      this.#make(hint.orgId, "");
      machine.note(hint);
      this.#after(machine.work());
      return success(null);
    });
  }

  refund(request: RefundAsk): Promise<Result<PurchaseRecord>> {
    return this.#answering(async ({ machine, deps }) => {
      const { rows } = deps;
      if (!this.#isMade()) return noSuchPurchase();
      const purchase = rows.purchase(request.purchase) ?? rows.purchaseOf(request.purchase);
      if (purchase === null) return noSuchPurchase();
      const refunded = await refundOf(deps, purchase, request);
      if (!refunded.ok) return refunded;
      const eventId = `evt_own_${request.name}`;
      machine.note({ eventId, orgId: rows.head().orgId, kind: "back", object: refunded.value });
      const working = machine.work();
      this.#after(working);
      await within(working, SHOW_MS).catch(() => undefined);
      return this.#shown(purchase.id);
    });
  }

  async taxes(paymentIds: readonly string[]): Promise<Result<Readonly<Record<string, Micros>>>> {
    if (!this.#isMade()) return success({});
    const rows = paymentRows(this.#sql);
    const found = paymentIds.map((id) => rows.payment(id)).filter((one) => one !== null);
    return success(Object.fromEntries(found.map((one) => [one.id, taxOf(one)])));
  }

  poke(): Promise<Result<null>> {
    return this.#answering(async ({ machine, deps }) => {
      if (!this.#isMade()) return success(null);
      const { orgId, walletMadeAt } = deps.rows.head();
      const requested = () => within(objectsOf(this.env).wallet(orgId).payments(), CALL_TIMEOUT_MS);
      const status = await callWallet(requested);
      const madeAt = status?.ok === true ? status.value.madeAt : null;
      const isAnew = madeAt !== null && walletMadeAt !== null && walletMadeAt !== madeAt;
      if (isAnew) await machine.resendPayments(madeAt);
      this.#after(machine.work()); // even while the wallet is unavailable
      await this.#publish(true);
      return success(null);
    });
  }

  override async alarm(): Promise<void> {
    this.#armedFor = null;
    if (!this.#isMade()) return;
    try {
      await this.#machineOf().work();
    } catch (error) {
      logWarning("payments_not_worked", { reason: reasonOf(error) });
      this.#machine = null;
    }
    await this.#arm();
    await this.#publish();
  }

  get #sql(): SqlStorage {
    return this.ctx.storage.sql;
  }

  #isMade(): boolean {
    return openTables(this.ctx.storage, PAYMENT_TABLES);
  }

  #make(orgId: string, orgName: string): void {
    makeTables(this.ctx.storage, PAYMENT_TABLES);
    const { rows } = this.#deps();
    const head = rows.head();
    if (head.orgId === "" || (head.orgName === "" && orgName !== "")) {
      rows.setHead({ ...head, orgId, orgName: head.orgName || orgName });
    }
  }

  #wanted(buying: Buying, config: Config): Result<string> {
    const { idempotency, method, amountMicro, saveCard, returnUrl, actor } = buying;
    const deps = this.#deps();
    const before = selectIdempotency(this.#sql, idempotency.name);
    if (before !== null) {
      const isSame = before.body === idempotency.body;
      return isSame ? success(before.purchaseId) : refuse({ kind: "idempotency_mismatch" });
    }
    const nowMs = deps.now();
    const recent = deps.rows.since(nowMs - RECENT_MS);
    const refused =
      checkPurchaseLimits(buying, recent, { numbers: config.numbers, nowMs }) ??
      (method === "card" ? refuseCharging(deps) : null);
    if (refused !== null) return refused;
    const id = mintId(PURCHASE_ID, nowMs);
    const made = newPurchase({ id, method, amountMicro, saveCard, returnUrl, actor }, nowMs);
    this.ctx.storage.transactionSync(() => {
      insertName(this.#sql, idempotency, { purchaseId: id, at: nowMs });
      recordOutcomeForWallet(deps, made, { type: "purchase.created", data: {} });
    });
    if (method === "checkout") this.#expireOthers(id);
    void this.#arm();
    return success(id);
  }

  /** Expires the organization's other open checkouts. If two are paid anyway, both are credited. */
  #expireOthers(id: string): void {
    const machine = this.#machineOf();
    for (const one of this.#deps().rows.open()) {
      if (one.method !== "checkout" || one.id === id || isOver(one)) continue;
      machine.cancel(one.id);
      this.#after(machine.advance(one.id));
    }
  }

  #shown(id: string): Result<PurchaseRecord> {
    const { rows } = this.#deps();
    const purchase = rows.purchase(id);
    if (purchase === null) return noSuchPurchase();
    return success(recordOf(purchase, rows.payment(purchase.paymentId ?? "")));
  }

  #after(work: Promise<unknown>): void {
    void this.#arm();
    const done = work
      .catch((error: unknown) => logWarning("payments_not_worked", { reason: reasonOf(error) }))
      .then(() => this.#arm())
      .then(() => this.#publish());
    this.ctx.waitUntil(done);
  }

  /** Writes changed purchases to D1. After a failure, the next work or `poke` tries again. */
  async #publish(isWhole = false): Promise<void> {
    if (!this.#isMade()) return;
    const { DB } = this.env;
    const { orgId } = this.#deps().rows.head();
    const to = {
      put: (purchases: readonly PurchaseRecord[]) =>
        within(putPurchases(DB, orgId, purchases), CALL_TIMEOUT_MS),
      totals: () => within(purchaseTotals(DB, orgId), CALL_TIMEOUT_MS),
    };
    try {
      await publishPurchases(this.#sql, to, isWhole);
    } catch (error) {
      logWarning("purchases_not_published", { org_id: orgId, reason: reasonOf(error) });
    }
  }

  #machineOf(): PurchaseRunner {
    this.#machine ??= new PurchaseRunner(this.#deps());
    return this.#machine;
  }

  #deps(): PaymentDeps {
    const config = this.#config();
    const { env } = this;
    const rows = paymentRows(this.#sql);
    const wallet = () => objectsOf(env).wallet(rows.head().orgId);
    const payments = config?.payments ?? OFF;
    return {
      rows,
      stripe: stripeOf(payments),
      wallet: {
        creditPayment: (credit) => within(wallet().creditPayment(credit), CALL_TIMEOUT_MS),
        setBack: (back) => within(wallet().setBack(back), CALL_TIMEOUT_MS),
        tellPurchase: (outcome) => within(wallet().tellPurchase(outcome), CALL_TIMEOUT_MS),
        disableTopUp: (reason) => within(wallet().disableTopUp(reason), CALL_TIMEOUT_MS),
      },
      store: {
        addCustomer: (id, orgId) => within(addCustomer(env.DB, id, orgId), CALL_TIMEOUT_MS),
        addCard: (fingerprint, orgId) =>
          within(addCard(env.DB, fingerprint, orgId), CALL_TIMEOUT_MS),
      },
      now: () => now(env),
      region: config?.region ?? "",
      isLive: payments.isLive,
      hasTax: payments.hasTax,
      taxCode: payments.taxCode,
    };
  }

  #config(): Config | null {
    const parsed = configOf(this.env);
    return parsed.ok ? parsed.config : null;
  }

  async #answering<T>(
    call: (with_: {
      readonly machine: PurchaseRunner;
      readonly deps: PaymentDeps;
      readonly config: Config;
    }) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const config = this.#config();
    if (config === null) return refuse({ kind: "misconfigured" });
    if (config.payments === null) return refuse({ kind: "payments_off" });
    try {
      return await call({ machine: this.#machineOf(), deps: this.#deps(), config });
    } catch (error) {
      logWarning("payments_failed", { reason: reasonOf(error) });
      this.#machine = null;
      return refuse(storageFailure(error));
    }
  }

  async #arm(): Promise<void> {
    if (!this.#isMade() || this.#config()?.payments === null) return;
    const next = this.#machineOf().nextAt();
    if (next === null) return;
    const at = now({}) + Math.max(WATCH_MS, next - now(this.env));
    // An overdue alarm was lost, so it is set again.
    const isArmed = this.#armedFor !== null && this.#armedFor > now({}) - WATCH_MS;
    if (isArmed && this.#armedFor !== null && this.#armedFor <= at) return;
    this.#armedFor = at;
    await this.ctx.storage.setAlarm(at);
  }
}

const OFF: PaymentsConfig = {
  secretKey: "",
  isLive: false,
  webhookSecrets: [],
  baseUrl: "http://127.0.0.1:1",
  hasTax: false,
  taxCode: null,
};

function noSuchPurchase(): Result<never> {
  return refuse({ kind: "not_found", message: "No such purchase." });
}

function refuseCharging(deps: PaymentDeps): ReturnType<typeof refuse> | null {
  if (deps.rows.head().card === null) {
    const message = "There is no saved card. Buy credits by checkout with save_card first.";
    return refuse({ kind: "conflict", message, param: "method", code: "no_saved_card" });
  }
  const other: Purchase | null = findRunningCharge(deps, null);
  return other === null ? null : refuse({ kind: "purchase_in_progress", purchaseId: other.id });
}
