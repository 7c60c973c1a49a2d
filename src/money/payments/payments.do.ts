import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../shared/config/config.ts";
import type { Config, PaymentsConfig } from "../../shared/config/config.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { PURCHASE_ID_PREFIX } from "../../shared/contracts/payments.ts";
import type {
  PurchaseRequest,
  SavedCard,
  StripeHint,
  PaymentsMethods,
  PurchasePage,
  PurchaseRecord,
  RefundRequest,
  TopUpRequest,
} from "../../shared/contracts/payments.ts";
import { now } from "../../shared/clock.ts";
import { conflict, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import type { Micros } from "../../shared/money.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { toStorageFailure } from "../../shared/storage-failure.ts";
import { createOrMigrateTables, migrateExistingTables } from "../../shared/tables.do.ts";
import { withTimeout } from "../../shared/timers.ts";
import { tryWalletCall } from "./crediting.ts";
import {
  addCard,
  addCustomer,
  readPublishedPurchaseTotals,
  putPurchases,
} from "./payments.store.ts";
import { checkPurchaseLimits, computePaymentTax } from "./payment-rules.ts";
import { PurchaseRunner, createPendingPurchase } from "./purchase-runner.ts";
import { queuePurchaseEvent } from "./purchase-transitions.ts";
import {
  insertPurchaseIdempotencyKey,
  PAYMENT_TABLES,
  createPaymentRows,
  selectPurchaseByIdempotencyKey,
  selectPurchases,
  publishPurchases,
} from "./payments-rows.do.ts";
import { isPurchaseEnded, toPurchaseRecord } from "./purchase.ts";
import type { Purchase, PaymentDeps } from "./purchase.ts";
import { refundPayment } from "./refunding.ts";
import { findRunningCharge } from "./steps.ts";
import { buildBillingPortalParams, buildPostCall } from "./stripe-calls.ts";
import { billingPortalSchema } from "./stripe-objects.ts";
import { parseStripeBody, createStripeClient } from "./stripe.ts";

const RESPONSE_WAIT_MS = 1500;
const CALL_TIMEOUT_MS = 10_000;
/** Minimum delay (ms) of the alarm that continues work after an eviction. */
const ALARM_DELAY_MIN_MS = 5000;
const RECENT_MS = 48 * 3_600_000;

export class Payments extends DurableObject<Env> implements PaymentsMethods {
  #runner: PurchaseRunner | null = null;
  #alarmAt: number | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.#alarmAt = await ctx.storage.getAlarm();
    });
  }

  buy(buying: PurchaseRequest): Promise<Result<PurchaseRecord>> {
    return this.#runCall(async ({ runner, config }) => {
      this.#initialize(buying.orgId, buying.orgName);
      const made = this.#createPurchase(buying, config);
      if (!made.ok) return made;
      return this.#recordAfter(runner.advance(made.value), made.value);
    });
  }

  async purchase(name: string): Promise<Result<PurchaseRecord>> {
    if (!this.#isInitialized()) return refuseUnknownPurchase();
    const { rows } = this.#deps();
    const found = rows.purchase(name) ?? rows.purchaseByStripeId(name);
    return found === null ? refuseUnknownPurchase() : this.#purchaseRecord(found.id);
  }

  async purchases(limit: number, after: string | null): Promise<Result<PurchasePage>> {
    if (!this.#isInitialized()) return success({ purchases: [], nextAfter: null });
    const found = selectPurchases(this.#sql, limit, after);
    const page = found.slice(0, limit);
    const { rows } = this.#deps();
    const purchases = page.map((one) => toPurchaseRecord(one, rows.payment(one.paymentId ?? "")));
    const nextAfter = found.length > limit ? (page.at(-1)?.id ?? null) : null;
    return success({ purchases, nextAfter });
  }

  cancel(id: string): Promise<Result<PurchaseRecord>> {
    return this.#runCall(async ({ runner }) => {
      if (!this.#isInitialized()) return refuseUnknownPurchase();
      runner.cancel(id);
      return this.#recordAfter(runner.advance(id), id);
    });
  }

  cancelAll(): Promise<Result<null>> {
    return this.#runCall(async ({ runner, deps }) => {
      const open = this.#isInitialized() ? deps.rows.openPurchases() : [];
      for (const { id } of open) {
        runner.cancel(id);
        this.#finishInBackground(runner.advance(id));
      }
      return success(null);
    });
  }

  portal(
    buyer: Pick<PurchaseRequest, "orgId" | "orgName" | "returnUrl">,
  ): Promise<Result<{ readonly url: string }>> {
    return this.#runCall(async ({ deps }) => {
      const customer = this.#isInitialized() ? deps.rows.head().customer : null;
      if (customer === null) {
        const message = "The billing portal is available after the first purchase.";
        return conflict(message, null, "no_purchases");
      }
      const params = buildBillingPortalParams(customer.id, buyer.returnUrl);
      const key = `portal:${crypto.randomUUID()}`;
      const answer = await deps.stripe.ask(
        buildPostCall("/v1/billing_portal/sessions", params, key),
      );
      const made = parseStripeBody(answer, billingPortalSchema);
      if (made !== null) return success({ url: made.url });
      logWarning("portal_not_made", { org_id: buyer.orgId, request_id: answer.requestId });
      return refuse({ kind: answer.kind === "refused" ? "misconfigured" : "storage_unavailable" });
    });
  }

  async savedCard(): Promise<Result<SavedCard | null>> {
    if (!this.#isInitialized()) return success(null);
    const { card } = createPaymentRows(this.#sql).head();
    if (card === null) return success(null);
    const { paymentMethod: _, ...shown } = card;
    return success(shown);
  }

  topUp(request: TopUpRequest): Promise<Result<null>> {
    return this.#runCall(async ({ runner }) => {
      this.#initialize(request.orgId, "");
      runner.startTopUp(request);
      this.#finishInBackground(runner.advance(request.id));
      return success(null);
    });
  }

  hint(hint: StripeHint): Promise<Result<null>> {
    return this.#runCall(async ({ runner }) => {
      this.#initialize(hint.orgId, "");
      runner.addHint(hint);
      this.#finishInBackground(runner.runDueWork());
      return success(null);
    });
  }

  refund(request: RefundRequest): Promise<Result<PurchaseRecord>> {
    return this.#runCall(async ({ runner, deps }) => {
      const { rows } = deps;
      if (!this.#isInitialized()) return refuseUnknownPurchase();
      const purchase = rows.purchase(request.purchase) ?? rows.purchaseByStripeId(request.purchase);
      if (purchase === null) return refuseUnknownPurchase();
      const refunded = await refundPayment(deps, purchase, request);
      if (!refunded.ok) return refunded;
      const eventId = `evt_own_${request.name}`;
      runner.addHint({ eventId, orgId: rows.head().orgId, kind: "back", object: refunded.value });
      return this.#recordAfter(runner.runDueWork(), purchase.id);
    });
  }

  async taxes(paymentIds: readonly string[]): Promise<Result<Readonly<Record<string, Micros>>>> {
    if (!this.#isInitialized()) return success({});
    const rows = createPaymentRows(this.#sql);
    const found = paymentIds.map((id) => rows.payment(id)).filter((one) => one !== null);
    return success(Object.fromEntries(found.map((one) => [one.id, computePaymentTax(one)])));
  }

  poke(): Promise<Result<null>> {
    return this.#runCall(async ({ runner, deps }) => {
      if (!this.#isInitialized()) return success(null);
      const { orgId, walletMadeAt } = deps.rows.head();
      const { wallet } = objectsOf(this.env);
      const status = await tryWalletCall(() => inTime(wallet(orgId).payments()));
      const madeAt = status?.ok === true ? status.value.madeAt : null;
      const isRebuilt = madeAt !== null && walletMadeAt !== null && walletMadeAt !== madeAt;
      if (isRebuilt) await runner.resendPayments(madeAt);
      // Due work runs even while the wallet is unavailable.
      this.#finishInBackground(runner.runDueWork());
      await this.#publish(true);
      return success(null);
    });
  }

  override async alarm(): Promise<void> {
    this.#alarmAt = null;
    if (!this.#isInitialized()) return;
    try {
      await this.#getRunner().runDueWork();
    } catch (error) {
      logWarning("payments_not_worked", { reason: errorMessageOf(error) });
      this.#runner = null;
    }
    await this.#setAlarm();
    await this.#publish();
  }

  get #sql(): SqlStorage {
    return this.ctx.storage.sql;
  }

  #isInitialized(): boolean {
    return migrateExistingTables(this.ctx.storage, PAYMENT_TABLES);
  }

  #initialize(orgId: string, orgName: string): void {
    createOrMigrateTables(this.ctx.storage, PAYMENT_TABLES);
    const { rows } = this.#deps();
    const head = rows.head();
    if (head.orgId === "" || (head.orgName === "" && orgName !== "")) {
      rows.setHead({ ...head, orgId, orgName: head.orgName || orgName });
    }
  }

  #createPurchase(buying: PurchaseRequest, config: Config): Result<string> {
    const { idempotency, method, amountMicro, saveCard, returnUrl, actor } = buying;
    const deps = this.#deps();
    const before = selectPurchaseByIdempotencyKey(this.#sql, idempotency.name);
    if (before !== null) {
      const isSame = before.body === idempotency.body;
      return isSame ? success(before.purchaseId) : refuse({ kind: "idempotency_mismatch" });
    }
    const nowMs = deps.now();
    const recent = deps.rows.purchasesSince(nowMs - RECENT_MS);
    const refused =
      checkPurchaseLimits(buying, recent, { numbers: config.numbers, nowMs }) ??
      (method === "card" ? refuseCharging(deps) : null);
    if (refused !== null) return refused;
    const id = mintId(PURCHASE_ID_PREFIX, nowMs);
    const made = createPendingPurchase(
      { id, method, amountMicro, saveCard, returnUrl, actor },
      nowMs,
    );
    this.ctx.storage.transactionSync(() => {
      insertPurchaseIdempotencyKey(this.#sql, idempotency, { purchaseId: id, at: nowMs });
      queuePurchaseEvent(deps, made, { type: "purchase.created", data: {} });
    });
    if (method === "checkout") this.#expireOthers(id);
    void this.#setAlarm();
    return success(id);
  }

  /** Expires the organization's other open checkouts. If two are paid anyway, both are credited. */
  #expireOthers(id: string): void {
    const runner = this.#getRunner();
    for (const one of this.#deps().rows.openPurchases()) {
      if (one.method !== "checkout" || one.id === id || isPurchaseEnded(one)) continue;
      runner.cancel(one.id);
      this.#finishInBackground(runner.advance(one.id));
    }
  }

  /** Returns the purchase once the work ends or after a short wait. Unfinished work continues. */
  async #recordAfter(work: Promise<void>, id: string): Promise<Result<PurchaseRecord>> {
    this.#finishInBackground(work);
    await withTimeout(work, RESPONSE_WAIT_MS).catch(() => undefined);
    return this.#purchaseRecord(id);
  }

  #purchaseRecord(id: string): Result<PurchaseRecord> {
    const { rows } = this.#deps();
    const purchase = rows.purchase(id);
    if (purchase === null) return refuseUnknownPurchase();
    return success(toPurchaseRecord(purchase, rows.payment(purchase.paymentId ?? "")));
  }

  #finishInBackground(work: Promise<unknown>): void {
    void this.#setAlarm();
    const done = work
      .catch((error: unknown) =>
        logWarning("payments_not_worked", { reason: errorMessageOf(error) }),
      )
      .then(() => this.#setAlarm())
      .then(() => this.#publish());
    this.ctx.waitUntil(done);
  }

  /** Writes changed purchases to D1. If this fails, the next publish retries. */
  async #publish(mustCompareTotals = false): Promise<void> {
    if (!this.#isInitialized()) return;
    const { DB } = this.env;
    const { orgId } = this.#deps().rows.head();
    const to = {
      put: (purchases: readonly PurchaseRecord[]) => inTime(putPurchases(DB, orgId, purchases)),
      totals: () => inTime(readPublishedPurchaseTotals(DB, orgId)),
    };
    try {
      await publishPurchases(this.#sql, to, mustCompareTotals);
    } catch (error) {
      logWarning("purchases_not_published", { org_id: orgId, reason: errorMessageOf(error) });
    }
  }

  #getRunner(): PurchaseRunner {
    this.#runner ??= new PurchaseRunner(this.#deps());
    return this.#runner;
  }

  #deps(): PaymentDeps {
    const config = this.#config();
    const { env } = this;
    const rows = createPaymentRows(this.#sql);
    const wallet = () => objectsOf(env).wallet(rows.head().orgId);
    const payments = config?.payments ?? PAYMENTS_OFF;
    return {
      rows,
      stripe: createStripeClient(payments),
      wallet: {
        creditPayment: (credit) => inTime(wallet().creditPayment(credit)),
        setBack: (back) => inTime(wallet().setBack(back)),
        tellPurchase: (outcome) => inTime(wallet().tellPurchase(outcome)),
        disableTopUp: (reason) => inTime(wallet().disableTopUp(reason)),
      },
      store: {
        addCustomer: (id, orgId) => inTime(addCustomer(env.DB, id, orgId)),
        addCard: (fingerprint, orgId) => inTime(addCard(env.DB, fingerprint, orgId)),
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

  async #runCall<T>(
    call: (with_: {
      readonly runner: PurchaseRunner;
      readonly deps: PaymentDeps;
      readonly config: Config;
    }) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const config = this.#config();
    if (config === null) return refuse({ kind: "misconfigured" });
    if (config.payments === null) return refuse({ kind: "payments_off" });
    try {
      return await call({ runner: this.#getRunner(), deps: this.#deps(), config });
    } catch (error) {
      logWarning("payments_failed", { reason: errorMessageOf(error) });
      this.#runner = null;
      return refuse(toStorageFailure(error));
    }
  }

  async #setAlarm(): Promise<void> {
    if (!this.#isInitialized() || this.#config()?.payments === null) return;
    const next = this.#getRunner().nextAt();
    if (next === null) return;
    const at = now({}) + Math.max(ALARM_DELAY_MIN_MS, next - now(this.env));
    // An overdue alarm was lost, so it is set again.
    const isArmed = this.#alarmAt !== null && this.#alarmAt > now({}) - ALARM_DELAY_MIN_MS;
    if (isArmed && this.#alarmAt !== null && this.#alarmAt <= at) return;
    this.#alarmAt = at;
    await this.ctx.storage.setAlarm(at);
  }
}

function inTime<T>(work: Promise<T>): Promise<T> {
  return withTimeout(work, CALL_TIMEOUT_MS);
}

const PAYMENTS_OFF: PaymentsConfig = {
  secretKey: "",
  isLive: false,
  webhookSecrets: [],
  baseUrl: "http://127.0.0.1:1",
  hasTax: false,
  taxCode: null,
};

function refuseUnknownPurchase(): Result<never> {
  return refuse({ kind: "not_found", message: "No such purchase." });
}

function refuseCharging(deps: PaymentDeps): ReturnType<typeof refuse> | null {
  if (deps.rows.head().card === null) {
    const message = "No card is saved. First buy credits through checkout with save_card.";
    return conflict(message, "method", "no_saved_card");
  }
  const other: Purchase | null = findRunningCharge(deps, null);
  return other === null ? null : refuse({ kind: "purchase_in_progress", purchaseId: other.id });
}
