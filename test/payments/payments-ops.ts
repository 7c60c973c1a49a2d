import * as fc from "fast-check";
import { StripeError } from "../fakes/stripe/stripe-error.ts";
import type { Organization, PaymentsFixture } from "./payments-fixture.ts";
import { MONTH_MICRO } from "./payments-oracle.ts";
import { micros } from "../../src/shared/money.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const kinds = [
  "no_answer",
  "reset",
  "500_stored",
  "500",
  "409",
  "429",
  "lock_timeout",
  "401",
  "slow",
] as const;
const places = [
  /./,
  /^POST \/v1\/customers$/,
  /^POST \/v1\/checkout\/sessions$/,
  /^POST \/v1\/invoices$/,
  /^POST \/v1\/invoiceitems/,
  /finalize$/,
  /\/pay$/,
  /\/void$/,
  /\/expire$/,
  /^GET /,
];
const bank = fc.constantFrom(
  "ok" as const,
  "asks" as const,
  "asks_invalid" as const,
  { decline_code: "insufficient_funds" },
  { decline_code: "lost_card" },
  { decline_code: "do_not_honor", advice_code: "do_not_try_again" },
  { blocked: true as const },
);
const which = fc.nat(5);

/** An event or action. `at` selects one of the existing objects. */
export const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("buy" as const),
      org: fc.nat(1),
      method: fc.constantFrom("checkout" as const, "card" as const),
      dollars: fc.integer({ min: 5, max: 40 }),
      save: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "pay" as const,
        "decline" as const,
        "approve" as const,
        "payInvoice" as const,
        "cancel" as const,
      ),
      at: which,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("topUp" as const),
      org: fc.nat(1),
      on: fc.boolean(),
      dollars: fc.integer({ min: 5, max: 20 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom("hold" as const, "settle" as const),
      org: fc.nat(1),
      at: which,
      share: fc.integer({ min: 0, max: 100 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("bank" as const), behavior: bank }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "refund" as const,
        "failRefund" as const,
        "forgive" as const,
        "warn" as const,
      ),
      at: which,
      share: fc.integer({ min: 1, max: 100 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("dispute" as const, "moveDispute" as const),
      at: which,
      status: fc.constantFrom(
        "warning_needs_response" as const,
        "needs_response" as const,
        "under_review" as const,
        "won" as const,
        "lost" as const,
        "appeal_under_review" as const,
      ),
      share: fc.integer({ min: 1, max: 100 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      kind: fc.constantFrom(...kinds),
      when: fc.constantFrom("before" as const, "after" as const),
      on: fc.constantFrom(...places),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("event" as const),
      how: fc.constantFrom("deliver" as const, "repeat" as const, "lose" as const),
      at: which,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("kill" as const), org: fc.nat(1), after: fc.nat(6) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("down" as const),
      org: fc.nat(1),
      calls: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "late" as const,
        "handMade" as const,
        "deleteCustomer" as const,
        "detach" as const,
        "payElsewhere" as const,
        "publish" as const,
        "rebuild" as const,
      ),
      org: fc.nat(1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      ms: fc.constantFrom(1000, 6000, MINUTE, 11 * MINUTE, HOUR, 7 * HOUR),
    }),
  },
);
export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

const pick = <T>(from: readonly T[], at: number): T | undefined =>
  from[at % Math.max(1, from.length)];

/** Runs an operation as far as that is currently possible. */
export async function apply(fixture: PaymentsFixture, one: Operation): Promise<void> {
  try {
    await done(fixture, one);
  } catch (error) {
    if (!(error instanceof StripeError)) throw error;
  }
  await fixture.work();
}

async function done(fixture: PaymentsFixture, one: Operation): Promise<void> {
  if (one.do === "pass") return fixture.pass(one.ms);
  if (one.do === "fault") return fixture.fake.fault(one);
  if (one.do === "bank") return fixture.fake.bank.next(one.behavior);
  if (one.do === "event") return deliverEvent(fixture, one);
  if ("org" in one) {
    const organization = fixture.organizations[one.org];
    if (organization !== undefined) ofOrganization(fixture, organization, one);
    return undefined;
  }
  if ("share" in one) return moneyMoves(fixture, one);
  return person(fixture, one);
}

async function deliverEvent(
  fixture: PaymentsFixture,
  { how, at }: Extract<Operation, { do: "event" }>,
): Promise<void> {
  const event = pick(fixture.inbox, at);
  if (event === undefined) return;
  if (how !== "repeat") fixture.inbox.splice(fixture.inbox.indexOf(event), 1);
  if (how !== "lose") await fixture.deliver(event);
}

type OfPerson = Extract<Operation, { do: "pay" | "decline" | "approve" | "payInvoice" | "cancel" }>;

const isOpen = ({ status }: { readonly status: string | null }): boolean => status === "open";

function person(fixture: PaymentsFixture, { do: how, at }: OfPerson): void {
  if (how === "cancel") return cancel(fixture, at);
  const { fake } = fixture;
  const { sessions, invoices } = fake.world;
  const open = [...(how === "payInvoice" ? invoices : sessions).values()];
  const id = pick(open.filter(isOpen), at)?.id;
  if (id === undefined) return undefined;
  if (how !== "approve") return void fake.person[how](id);
  fake.person.asks(id);
  fake.person.approve(id);
  return undefined;
}

function cancel(fixture: PaymentsFixture, at: number): void {
  const organization = fixture.organizations[at % 2];
  const open = pick(organization?.rows.openPurchases() ?? [], at);
  if (open !== undefined) organization?.machine.cancel(open.id);
}

type OfOrganization = Extract<Operation, { readonly org: number }>;

function ofOrganization(
  fixture: PaymentsFixture,
  organization: Organization,
  one: OfOrganization,
): void {
  const { wallet } = organization;
  if (one.do === "buy") return organization.buy(one.method, one.dollars, one.save);
  if ("share" in one) {
    if (one.do === "hold") return wallet.hold(one.share * 200_000);
    return wallet.settle(one.at % Math.max(1, wallet.holds.length), one.share / 100);
  }
  if (one.do !== "topUp") return fails(fixture, organization, one);
  if (one.on && wallet.stored.topUp.disabledReason !== null) {
    organization.enabledAt.push(fixture.fake.world.charges.size);
  }
  const amountMicro = micros(one.dollars * 1_000_000);
  const [belowMicro, mostPerMonthMicro] = [micros(25_000_000), micros(MONTH_MICRO)];
  return wallet.set(one.on ? { belowMicro, amountMicro, mostPerMonthMicro } : null);
}

type Failing = Exclude<
  OfOrganization,
  { readonly do: "buy" | "topUp" } | { readonly share: number }
>;

function fails(fixture: PaymentsFixture, organization: Organization, one: Failing): void {
  const { wallet } = organization;
  switch (one.do) {
    case "kill":
      return organization.killAfter(one.after);
    case "down":
      wallet.down = one.calls;
      fixture.bookDown = one.calls % 2;
      return undefined;
    case "late":
      return arriveLate(fixture);
    case "publish":
      return wallet.publish();
    case "rebuild":
      return wallet.rebuild();
    case "handMade":
    case "deleteCustomer":
    case "detach":
    case "payElsewhere":
      return atStripe(fixture, organization, one.do);
  }
}

function arriveLate({ late }: PaymentsFixture): void {
  void late.shift()?.();
}

function atStripe(
  fixture: PaymentsFixture,
  { id, rows }: Organization,
  how: "handMade" | "deleteCustomer" | "detach" | "payElsewhere",
): void {
  const [customer] = fixture.customerOf(id).toReversed();
  const method = rows.head().card?.paymentMethod;
  const invoice = [...fixture.fake.world.invoices.values()].find(({ status }) => status === "open");
  if (how === "handMade" && customer !== undefined) fixture.fake.bank.handMade(customer, 700);
  if (how === "deleteCustomer" && customer !== undefined) {
    fixture.fake.bank.deleteCustomer(customer);
  }
  if (how === "detach" && method !== undefined) fixture.fake.bank.detach(method);
  if (how === "payElsewhere" && invoice !== undefined) fixture.fake.bank.payElsewhere(invoice.id);
}

type Moves = Extract<
  Operation,
  { readonly do: "refund" | "failRefund" | "forgive" | "warn" | "dispute" | "moveDispute" }
>;

function moneyMoves(fixture: PaymentsFixture, one: Moves): void {
  const { fake, organizations } = fixture;
  if (one.do === "forgive") return organizations[one.at % 2]?.wallet.forgive(one.share * 1000);
  if (one.do === "failRefund") {
    const refund = pick([...fake.world.refunds.values()], one.at);
    return refund === undefined ? undefined : fake.bank.moveRefund(refund.id, "failed");
  }
  if (one.do === "moveDispute") {
    const dispute = pick([...fake.world.disputes.values()], one.at);
    if (dispute === undefined) return undefined;
    const cents = one.share > 50 ? null : shareOf(dispute.amount, one.share);
    return fake.bank.moveDispute(dispute.id, one.status, cents);
  }
  return ofPayment(fixture, one);
}

const shareOf = (all: number, share: number): number =>
  Math.max(1, Math.floor((all * share) / 100));

function ofPayment({ fake }: PaymentsFixture, one: Moves): void {
  const payment = pick(fake.payments(), one.at);
  if (payment === undefined) return;
  const cents = one.share > 75 ? null : shareOf(payment.received, one.share);
  if (one.do === "warn") fake.bank.warn(payment.intent);
  else if (one.do === "refund") fake.bank.refund(payment.intent, cents);
  else if (one.do === "dispute") {
    const isNew = one.status !== "won" && one.status !== "lost";
    const status = isNew ? one.status : "needs_response";
    fake.bank.dispute(payment.intent, { cents, status });
  }
}
