import { FakeStripe } from "../fakes/stripe/fake.ts";
import type { StripeEvent as FakeEvent } from "../fakes/stripe/objects.ts";
import { PURCHASE_ID_PREFIX } from "../../src/shared/contracts/payments.ts";
import type { StripeHint, PurchaseMethod } from "../../src/shared/contracts/payments.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { success } from "../../src/shared/failure.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { PurchaseRunner, createPendingPurchase } from "../../src/money/payments/purchase-runner.ts";
import { isPurchaseEnded } from "../../src/money/payments/purchase.ts";
import type { PaymentDeps } from "../../src/money/payments/purchase.ts";
import { dispatchEvent, dispatchMissedEvents } from "../../src/money/payments/stripe-events.ts";
import type {
  EventDispatchServices,
  EventSweepCursor,
} from "../../src/money/payments/stripe-events.ts";
import { stripeEventSchema } from "../../src/money/payments/stripe-objects.ts";
import { createStripeClient } from "../../src/money/payments/stripe.ts";
import type { FetchFunction } from "../../src/money/payments/stripe.ts";
import { MemoryRows } from "./memory-rows.ts";
import { PlainWallet } from "./plain-wallet.ts";

const START = Date.UTC(2026, 10, 2);
const SWEEP_MS = 900_000;
const STRIPE = { secretKey: "sk_test_0123456789", baseUrl: "http://stripe.test" };

/** A deliberate fault, which the checks must detect. */
export type Broken = {
  readonly wallet?: (wallet: PlainWallet) => PlainWallet;
  readonly wrapDeps?: (deps: PaymentDeps) => PaymentDeps;
  readonly collects?: boolean;
};

/**
 * An organization with its rows, its wallet and its running instance, which can be killed between
 * any two awaits.
 */
export class Organization {
  readonly rows: MemoryRows;
  readonly wallet: PlainWallet;
  machine: PurchaseRunner;
  /** The number of charges each time a person enabled automatic purchases. */
  readonly enabledAt: number[] = [];
  readonly #fixture: PaymentsFixture;
  readonly #broken: Broken;
  /** The number of awaits before the instance is killed, or Infinity. */
  #killAfter = Infinity;
  #generation = 0;
  #killed = Promise.withResolvers<void>();

  constructor(id: string, fixture: PaymentsFixture, broken: Broken) {
    this.rows = new MemoryRows(id);
    const wallet = new PlainWallet(() => fixture.now, broken.collects);
    this.wallet = broken.wallet?.(wallet) ?? wallet;
    this.#fixture = fixture;
    this.#broken = broken;
    this.machine = this.#born();
  }

  get id(): string {
    return this.rows.head().orgId;
  }

  killAfter(awaits: number): void {
    this.#killAfter = awaits;
  }

  /** Runs work in an instance until it ends or is killed. */
  async run(work: (machine: PurchaseRunner) => Promise<unknown>): Promise<void> {
    await Promise.race([work(this.machine), this.#killed.promise]);
    this.tellTopUp();
  }

  buy(method: PurchaseMethod & ("checkout" | "card"), dollars: number, saveCard: boolean): void {
    if (method === "card" && this.rows.head().card === null) return;
    const id = mintId(PURCHASE_ID_PREFIX, this.#fixture.now);
    const amountMicro = micros(dollars * 1_000_000);
    const purchase = {
      id,
      method,
      amountMicro,
      saveCard,
      returnUrl: "https://eu.test/",
      actor: SYSTEM_ACTOR,
    };
    this.rows.putPurchase(createPendingPurchase(purchase, this.#fixture.now));
    if (method === "checkout") {
      const others = this.rows
        .openPurchases()
        .filter((one) => one.method === "checkout" && one.id !== id);
      for (const one of others) this.machine.cancel(one.id);
    }
  }

  /** Notifies the payments code like the wallet does. A repeat has no effect. */
  tellTopUp(): void {
    const { open } = this.wallet.stored.topUp;
    if (open === null || open.isTold) return;
    const { id, amountMicro, wantedAt } = open;
    this.machine.startTopUp({ orgId: this.id, id, amountMicro, wantedAt });
    const topUp = { ...this.wallet.stored.topUp, open: { ...open, isTold: true } };
    this.wallet.stored = { ...this.wallet.stored, topUp };
  }

  async poke(): Promise<void> {
    const { walletMadeAt } = this.rows.head();
    const { madeAt } = this.wallet;
    const isAnew = walletMadeAt !== null && walletMadeAt !== madeAt;
    await this.run(async (machine) => {
      if (isAnew) await machine.resendPayments(madeAt);
      await machine.runDueWork();
    });
  }

  kill(): void {
    this.#generation += 1;
    this.#killAfter = Infinity;
    this.#killed.resolve();
    this.#killed = Promise.withResolvers();
    this.machine = this.#born();
  }

  /** Checks before and after each await that the instance was not killed. */
  #alive(generation: number): boolean {
    if (generation === this.#generation && this.#killAfter-- <= 0) this.kill();
    return generation === this.#generation;
  }

  #born(): PurchaseRunner {
    const generation = this.#generation;
    const gated = async <T>(call: () => Promise<T>): Promise<T> => {
      if (!this.#alive(generation)) return new Promise<T>(() => {});
      const answer = await call();
      return this.#alive(generation) ? answer : new Promise<T>(() => {});
    };
    /** A wallet call that was in transit when its instance was killed can still arrive. */
    const sent = async <T>(call: () => Promise<T>): Promise<T> => {
      const before = this.#generation;
      const answer = gated(call);
      if (generation === before && generation !== this.#generation) this.#fixture.late.push(call);
      return answer;
    };
    const stripe = this.#fixture.stripe();
    const { wallet, rows } = this;
    const deps: PaymentDeps = {
      rows,
      stripe: { ask: (call) => gated(() => stripe.ask(call)) },
      wallet: {
        creditPayment: (credit) => sent(() => wallet.creditPayment(credit)),
        setBack: (back) => sent(() => wallet.setBack(back)),
        tellPurchase: (report) => sent(() => wallet.tellPurchase(report)),
        disableTopUp: (reason) => sent(() => wallet.disableTopUp(reason)),
      },
      store: {
        addCustomer: (id, orgId) => gated(async () => this.#fixture.addCustomer(id, orgId)),
        addCard: () => gated(async () => 1),
      },
      now: () => this.#fixture.now,
      region: "eu",
      isLive: false,
      hasTax: this.#fixture.hasTax,
      taxCode: null,
    };
    return new PurchaseRunner(this.#broken.wrapDeps?.(deps) ?? deps);
  }
}

/** Two organizations of one region with one Stripe account and a database. */
export class PaymentsFixture {
  now = START;
  readonly hasTax: boolean;
  readonly fake: FakeStripe;
  readonly organizations: readonly Organization[];
  /** Events that Stripe has sent and no one has processed yet. */
  readonly inbox: FakeEvent[] = [];
  /** Wallet calls that arrive after their instance was killed. */
  readonly late: (() => Promise<unknown>)[] = [];
  /** Faults of invoices at the time of their payment. */
  readonly oddPays: string[] = [];
  /** The number of database calls that fail from now on. */
  bookDown = 0;
  readonly #customers = new Map<string, string>();
  #cursor: EventSweepCursor | null = null;
  #sweptAt = START;

  constructor(hasTax: boolean, broken: Broken = {}) {
    this.hasTax = hasTax;
    this.fake = new FakeStripe({ now: () => this.now, taxPercent: hasTax ? 19 : 0 });
    this.organizations = ["org_a", "org_b"].map((id) => new Organization(id, this, broken));
  }

  /** Makes each organization buy credits once and save the card, and publishes its wallet. */
  async begin(): Promise<void> {
    for (const one of this.organizations) one.buy("checkout", 20, true);
    await this.work();
    for (const { id, status } of this.fake.world.sessions.values()) {
      if (status === "open") this.fake.person.pay(id);
    }
    await this.sweep();
    for (const { wallet } of this.organizations) wallet.publish();
  }

  stripe() {
    const send: FetchFunction = (url, init) => {
      const [, invoice] = /\/v1\/invoices\/(\w+)\/pay$/.exec(url) ?? [];
      if (invoice !== undefined) this.oddPays.push(...this.#oddPay(invoice));
      return this.fake.handle(new Request(url, init));
    };
    return createStripeClient(STRIPE, send);
  }

  addCustomer(customerId: string, orgId: string): void {
    if (this.bookDown > 0) {
      this.bookDown -= 1;
      throw new Error("the book is away");
    }
    this.#customers.set(customerId, orgId);
  }

  customerOf(orgId: string): readonly string[] {
    return [...this.#customers].filter(([, of]) => of === orgId).map(([id]) => id);
  }

  /** Returns the organization of a payment by the database. */
  organizationOf(customer: string | null): Organization | undefined {
    const orgId = this.#customers.get(customer ?? "");
    return this.organizations.find(({ id }) => id === orgId);
  }

  /**
   * Returns the faults of an invoice that is about to be paid. Its row must name it, and it must be
   * open, unless a person has just paid it.
   */
  #oddPay(id: string): string[] {
    const invoice = this.fake.world.invoices.get(id);
    const owner = this.organizationOf(invoice?.customer ?? null);
    const purchase = owner?.rows.purchaseByStripeId(id) ?? null;
    if (invoice === undefined || purchase === null || purchase.method === "checkout") {
      return [`11: ${id} is paid, and is no purchase's`];
    }
    const isPayable = invoice.status === "open" || invoice.status === "paid";
    return isPayable ? [] : [`11: ${id} is paid while it is ${invoice.status}`];
  }

  /** Runs all due work until none is left. */
  async work(): Promise<void> {
    this.inbox.push(...this.fake.takeEvents());
    for (const one of this.organizations) {
      one.tellTopUp();
      for (let round = 0; round < 4; round++) {
        const next = one.machine.nextAt();
        if (next === null || next > this.now) break;
        await one.run((machine) => machine.runDueWork());
      }
    }
    this.inbox.push(...this.fake.takeEvents());
  }

  /** Advances the clock, and runs alarms and the sweep when they are due. */
  async pass(ms: number): Promise<void> {
    const until = this.now + ms;
    for (let rounds = 0; rounds < 3000 && this.now < until; rounds++) {
      const times = this.organizations.flatMap(({ machine }) => machine.nextAt() ?? []);
      const next = Math.min(until, this.#sweptAt + SWEEP_MS, ...times);
      this.now = Math.max(this.now + 1, next);
      if (this.now >= this.#sweptAt + SWEEP_MS) {
        this.#sweptAt = this.now;
        await this.sweep();
      }
      await this.work();
    }
  }

  async deliver(event: FakeEvent): Promise<void> {
    const parsed = stripeEventSchema.safeParse(JSON.parse(JSON.stringify(event)));
    if (!parsed.success) return;
    await dispatchEvent(this.#dispatching(), parsed.data);
    await this.work();
  }

  async sweep(): Promise<void> {
    await dispatchMissedEvents(this.#dispatching(), this.now).catch(() => null);
    for (const one of this.organizations) {
      one.wallet.endTurn();
      await one.poke();
    }
    await this.work();
  }

  /** Whether no work is in progress. */
  get isQuiet(): boolean {
    return this.organizations.every(({ rows }) => {
      return rows.all().every(isPurchaseEnded) && rows.waitingHints().length === 0;
    });
  }

  #dispatching(): EventDispatchServices {
    return {
      stripe: this.stripe(),
      isLive: false,
      payments: (orgId) => ({
        hint: async (hint: StripeHint) => {
          this.organizations.find(({ id }) => id === orgId)?.machine.addHint(hint);
          return success(null);
        },
      }),
      store: {
        organizationOf: async (customer) => this.#customers.get(customer) ?? null,
        isOrganization: async (orgId) => this.organizations.some(({ id }) => id === orgId),
        cursor: async () => this.#cursor,
        moveCursor: async (to) => {
          this.#cursor = to;
        },
      },
    };
  }
}
