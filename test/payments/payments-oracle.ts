import type { FakeStripe } from "../fakes/stripe/fake.ts";
import type { Charge } from "../fakes/stripe/objects.ts";
import { computePaymentCredits } from "../../src/money/payments/payment-rules.ts";
import { isPurchaseEnded } from "../../src/money/payments/purchase.ts";
import type { Purchase } from "../../src/money/payments/purchase.ts";
import type { Organization, PaymentsFixture } from "./payments-fixture.ts";

/** Returns the faults that may never occur, each with its number in the reference. */
export function faultsNow(fixture: PaymentsFixture): string[] {
  return [
    ...fixture.organizations.flatMap((one) => [...moneyFaults(one), ...purchaseFaults(one)]),
    ...fixture.organizations.flatMap((one) => attemptFaults(fixture, one)),
    ...creditFaults(fixture),
    ...callFaults(fixture),
    ...fixture.oddPays,
  ];
}

/** Returns the faults that may not remain once failures have stopped and a sweep has run. */
export function faultsAtRest(fixture: PaymentsFixture): string[] {
  const faults: string[] = [];
  for (const { rows, id } of fixture.organizations) {
    for (const one of rows.all()) {
      if (!isPurchaseEnded(one)) {
        faults.push(`13: ${id} ${one.method} is ${one.state}, step ${one.step}`);
      }
    }
    if (rows.waitingHints().length > 0) faults.push(`13: ${id} has hints waiting`);
  }
  for (const { organization, purchase, intent, net } of paymentsOf(fixture)) {
    const { stored } = organization.wallet;
    const credited = stored.references.get(`stripe:${intent}`);
    if (credited !== net && net > 0) {
      faults.push(`2: ${purchase.id} credited ${credited} of ${net}`);
    }
    const { gross, captured } = fixture.fake.truth(intent);
    const back = Math.ceil((net * gross) / captured);
    const known = stored.payments.get(intent)?.refunded;
    if (known !== back) faults.push(`7: of ${intent} ${known} is back, and ${back} by Stripe`);
  }
  return [...faults, ...faultsNow(fixture)];
}

function moneyFaults({ id, wallet }: Organization): string[] {
  const { stored, held } = wallet;
  const { balance, charges, debts, payments, references } = stored;
  const ledger = [...references.values()].reduce((sum, amount) => sum + amount, 0);
  const back = [...payments.values()].reduce((sum, one) => sum + one.refunded, 0);
  const { owed, taken, forgiven } = debts;
  const faults: string[] = [];
  if (ledger - charges !== balance) faults.push(`3: ${id} ledger ${ledger - charges}, ${balance}`);
  if (balance < held || held < 0) faults.push(`3: ${id} holds ${held} of ${balance}`);
  const isSum = back === taken + owed + forgiven;
  if (!isSum) faults.push(`4: ${id} back ${back}, ${JSON.stringify(debts)}`);
  if (Math.min(owed, taken, forgiven) < 0) faults.push(`4: ${id} ${JSON.stringify(debts)}`);
  if (owed > 0 && balance !== held) faults.push(`5: ${id} owes ${owed} and has ${balance - held}`);
  const credits = [...payments.values()].reduce((sum, one) => sum + one.credited, 0);
  if (balance !== credits - charges - taken) faults.push(`6: ${id} ${balance}`);
  for (const one of payments.values()) {
    const isInRange = one.refunded >= 0 && one.refunded <= one.credited;
    if (!isInRange) faults.push(`7: ${one.id} ${one.refunded}`);
  }
  return faults;
}

function purchaseFaults({ id, rows, wallet }: Organization): string[] {
  const open = rows.all().filter((one) => !isPurchaseEnded(one));
  const charged = open.filter((one) => one.paymentMethod !== null);
  const faults = charged.length > 1 ? [`8: ${id} charges its card for ${charged.length}`] : [];
  if (wallet.madeAt > 1) return faults; // unpublished requests for a purchase are lost
  const months = new Map<string, number>();
  for (const { method, state, createdAt, amountMicro } of rows.all()) {
    if (method !== "auto" || state === "declined" || state === "expired") continue;
    const month = new Date(createdAt).toISOString().slice(0, 7);
    months.set(month, (months.get(month) ?? 0) + amountMicro);
  }
  const most = Math.max(0, ...months.values());
  return most > MONTH_MICRO ? [...faults, `9: ${id} wanted ${most} in a month`] : faults;
}

/** The maximum per month in these runs. */
export const MONTH_MICRO = 60_000_000;

type Known = {
  readonly organization: Organization;
  readonly purchase: Purchase;
  readonly intent: string;
  readonly net: number;
};

/** Returns each captured payment of a purchase. */
function paymentsOf(fixture: PaymentsFixture): Known[] {
  const { sessions, invoices } = fixture.fake.world;
  return fixture.fake.payments().flatMap((payment) => {
    const source = sessions.get(payment.session ?? "") ?? invoices.get(payment.invoice ?? "");
    const organization = fixture.organizationOf(payment.customer);
    const purchase = organization?.rows.purchase(source?.metadata?.["purchase_id"] ?? "") ?? null;
    if (organization === undefined || purchase === null) return [];
    const { received: receivedCents, total: totalCents, tax: taxCents, intent } = payment;
    const net = computePaymentCredits(purchase.amountMicro, {
      receivedCents,
      totalCents,
      taxCents,
    });
    return [{ organization, purchase, intent, net }];
  });
}

/**
 * Checks that each credit belongs to a captured payment of this organization, and never exceeds its
 * net amount.
 */
function creditFaults(fixture: PaymentsFixture): string[] {
  const known = new Map(paymentsOf(fixture).map((one) => [one.intent, one]));
  return fixture.organizations.flatMap(({ id, wallet }) =>
    [...wallet.stored.references].flatMap(([reference, amount]) => {
      const [, intent = "", more] = /^stripe:([^:]+)(:back:)?/.exec(reference) ?? [];
      if (intent === "" || more !== undefined) return [];
      const one = known.get(intent);
      if (one === undefined) return [`1: ${id} has ${reference} of no purchase`];
      const whose = one.organization.id;
      if (whose !== id) return [`14: ${id} has ${reference} of ${whose}`];
      return amount > one.net ? [`2: ${reference} is ${amount}, above ${one.net}`] : [];
    }),
  );
}

/** Maximum consecutive declines of automatic purchases. A permanent decline must be the last. */
const DECLINES_MAX = 4;

/**
 * Checks the number of charges. A success or a person who enables automatic purchases starts a new
 * count.
 */
function attemptFaults({ fake }: PaymentsFixture, one: Organization): string[] {
  if (one.wallet.madeAt > 1) return []; // earlier work in progress is unknown
  const { charges, invoicePayments } = fake.world;
  const invoices = new Map(
    [...invoicePayments.values()].map(({ invoice, payment }) => [payment.payment_intent, invoice]),
  );
  const faults: string[] = [];
  let declines = 0;
  let isRefused = false;
  for (const [index, charge] of [...charges.values()].entries()) {
    const invoice = invoices.get(charge.payment_intent) ?? "";
    const isAuto = one.rows.purchaseByStripeId(invoice)?.method === "auto";
    const isAnew = one.enabledAt.includes(index) || (isAuto && charge.paid);
    if (isAnew) [declines, isRefused] = [0, false];
    if (!isAuto || charge.paid) continue;
    if (isRefused) faults.push(`10: ${one.id} is charged after a card was refused for good`);
    declines += 1;
    const isOften = declines > DECLINES_MAX;
    if (isOften) faults.push(`10: ${one.id} is declined ${declines} times in a row`);
    isRefused = isForGood(fake, charge);
  }
  return faults;
}

function isForGood({ world: state }: FakeStripe, { outcome, payment_intent: id }: Charge): boolean {
  const error = state.intents.get(id)?.last_payment_error;
  return outcome.type === "blocked" || FOR_GOOD.test(JSON.stringify(error ?? null));
}

/** Bank errors that forbid another attempt. */
const FOR_GOOD = /lost_card|do_not_try_again/;

type Calls = {
  upTo: number;
  readonly keys: Map<string, string>;
  readonly sent: Map<string, string>;
  readonly faults: string[];
};
/** The calls of each fixture that were already checked, so that each is read once. */
const judged = new WeakMap<PaymentsFixture, Calls>();

/**
 * Checks the calls to Stripe: an invoice is always paid with the same idempotency key and
 * parameters.
 */
function callFaults(fixture: PaymentsFixture): readonly string[] {
  const calls: Calls = judged.get(fixture) ?? {
    upTo: 0,
    keys: new Map(),
    sent: new Map(),
    faults: [],
  };
  judged.set(fixture, calls);
  const { keys, sent, faults } = calls;
  const { requests } = fixture.fake;
  for (const { method, path, key, params } of requests.slice(calls.upTo)) {
    if (method !== "POST" || key === null) continue;
    const body = JSON.stringify([path, params]);
    const before = sent.get(key) ?? body;
    if (before !== body) faults.push(`12: ${key} with ${body} after ${before}`);
    sent.set(key, body);
    if (!path.endsWith("/pay")) continue;
    const other = keys.get(path) ?? key;
    if (other !== key) faults.push(`12: ${path} under ${key} and ${other}`);
    keys.set(path, key);
  }
  calls.upTo = requests.length;
  return faults;
}
