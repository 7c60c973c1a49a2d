import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { MockInstance } from "vitest";
import type { NumericConfigVariables } from "../../src/shared/config/config.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { success } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import { checkPurchaseLimits } from "../../src/money/payments/payment-rules.ts";
import { createPendingPurchase } from "../../src/money/payments/purchase-runner.ts";
import { refundPayment } from "../../src/money/payments/refunding.ts";
import { dispatchMissedEvents } from "../../src/money/payments/stripe-events.ts";
import type {
  EventDispatchServices,
  EventSweepCursor,
} from "../../src/money/payments/stripe-events.ts";
import type { StripeCall } from "../../src/money/payments/stripe.ts";
import { PaymentsFixture } from "./payments-fixture.ts";
import type { Broken, Organization } from "./payments-fixture.ts";

const HOUR = 3_600_000;
let alerts: MockInstance;

beforeEach(() => {
  for (const level of ["warn", "log"] as const) {
    vi.spyOn(console, level).mockImplementation(() => undefined);
  }
  alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const alertCount = (alert: string): number =>
  alerts.mock.calls.filter(([line]) => String(line).includes(`"${alert}"`)).length;

/** Returns a fixture in which both organizations have bought credits once and saved the card. */
async function newFixture(
  broken: Broken = {},
): Promise<{ fixture: PaymentsFixture; one: Organization }> {
  const fixture = new PaymentsFixture(false, broken);
  await fixture.begin();
  const [one] = fixture.organizations;
  if (one === undefined) throw new Error("there is no organization");
  return { fixture, one };
}

const requestCount = ({ fake }: PaymentsFixture, what: string): number =>
  fake.requests.filter(({ method, path }) => `${method} ${path}` === what).length;

it("a repeated refund call returns the first refund, even after two days", async () => {
  const { fixture, one } = await newFixture();
  const [purchase] = one.rows.all();
  if (purchase === undefined) throw new Error("nothing was bought");
  const refund = (name: string, amountCents: number | null) =>
    refundPayment({ rows: one.rows, stripe: fixture.stripe() }, purchase, {
      purchase: purchase.id,
      amountCents,
      name,
      actor: SYSTEM_ACTOR,
    });
  expect((await refund("first", 250)).ok).toBe(true);
  await fixture.pass(49 * HOUR);
  expect((await refund("first", 250)).ok).toBe(true);
  expect(await refund("first", 300)).toMatchObject({ failure: { kind: "idempotency_mismatch" } });
  expect(fixture.fake.world.refunds.size).toBe(1);
  expect((await refund("second", 250)).ok).toBe(true);
  expect([...fixture.fake.world.refunds.values()].map(({ amount }) => amount)).toEqual([250, 250]);
});

it("an invoice that contains an amount twice is never paid", async () => {
  const twice: Broken = {
    wrapDeps: (deps) => ({
      ...deps,
      stripe: {
        ask: async (call) => {
          const answer = await deps.stripe.ask(call);
          if (call.path !== "/v1/invoiceitems") return answer;
          return deps.stripe.ask({ ...call, key: `${call.key}:again` });
        },
      },
    }),
  };
  const { fixture, one } = await newFixture(twice);
  const before = fixture.fake.payments().length;
  one.buy("card", 10, false);
  await fixture.work();
  await fixture.pass(HOUR);
  expect(one.rows.all().map(({ state }) => state)).toEqual(["credited", "declined"]);
  expect(fixture.fake.payments().length).toBe(before);
  expect([...fixture.fake.world.invoices.values()].at(-1)?.status).toBe("void");
  expect(alertCount("invoice_differs")).toBe(1);
});

it("a wallet that is rebuilt from a copy older than a won dispute gets the disputed credits back again", async () => {
  const { fixture, one } = await newFixture();
  const [payment] = fixture.fake.payments();
  const intent = payment?.intent ?? "";
  const { balance } = one.wallet.stored;
  const dispute = fixture.fake.bank.dispute(intent);
  await fixture.sweep();
  expect(one.wallet.stored.balance).toBe(0);
  one.wallet.publish();
  fixture.fake.bank.moveDispute(dispute, "won");
  await fixture.sweep();
  expect(one.wallet.stored.balance).toBe(balance);
  one.wallet.rebuild();
  await fixture.sweep();
  expect(one.wallet.stored).toMatchObject({ balance, debts: { owed: 0, taken: 0 } });
});

/** Buys a checkout while Stripe returns a status. Returns the methods of the calls in 15 minutes. */
async function checkoutCalls(status: number): Promise<readonly string[]> {
  const methods: string[] = [];
  const failing: Broken = {
    wrapDeps: (deps) => ({
      ...deps,
      stripe: {
        ask: async (call) => {
          if (!call.path.startsWith("/v1/checkout/sessions")) return deps.stripe.ask(call);
          methods.push(call.method);
          return { kind: "unsure", status, isStored: false, requestId: null };
        },
      },
    }),
  };
  const fixture = new PaymentsFixture(false, failing);
  fixture.organizations[0]?.buy("checkout", 10, false);
  await fixture.pass(HOUR / 4);
  return methods;
}

it.each([500, 503])(
  "a checkout whose creation returns %i four times is searched for at Stripe",
  async (status) => {
    expect((await checkoutCalls(status)).slice(0, 5)).toEqual([...Array(4).fill("POST"), "GET"]);
  },
);

it("a checkout whose creation returns 429 for 15 minutes is attempted again, but not searched for", async () => {
  const methods = await checkoutCalls(429);
  expect(methods.length).toBeGreaterThan(4);
  expect(new Set(methods)).toEqual(new Set(["POST"]));
});

it("several events about one payment cause only one read of the payment from Stripe", async () => {
  const { fixture, one } = await newFixture();
  const [payment] = fixture.fake.payments();
  fixture.fake.bank.refund(payment?.intent ?? "", 100);
  const events = fixture.fake.takeEvents().filter(({ type }) => type.includes("refund"));
  expect(events.length).toBeGreaterThan(1);
  const before = requestCount(fixture, "GET /v1/refunds");
  for (const { id } of events) {
    const hint = { eventId: id, orgId: one.id, kind: "back", object: payment?.intent ?? "" };
    one.machine.addHint({ ...hint, kind: "back" });
  }
  await fixture.work();
  expect(one.rows.waitingHints()).toEqual([]);
  expect(requestCount(fixture, "GET /v1/refunds")).toBe(before + 1);
});

it("an event for another system is read only once, and an unreadable event is reported after an hour", async () => {
  const { fixture, one } = await newFixture();
  const [customer = ""] = fixture.customerOf(one.id);
  const foreign = fixture.fake.world.intents.get(fixture.fake.bank.handMade(customer, 700));
  Object.assign(foreign ?? {}, { currency: "eur" });
  await fixture.sweep();
  expect(one.rows.waitingHints()).toEqual([]);
  const [payment] = fixture.fake.payments();
  const refund = fixture.fake.world.refunds.get(
    fixture.fake.bank.refund(payment?.intent ?? "", 100),
  );
  Object.assign(refund ?? {}, { currency: "eur" });
  await fixture.sweep();
  await fixture.pass(HOUR / 2);
  expect(one.rows.waitingHints().length).toBeGreaterThan(0);
  expect(alertCount("payment_hint_stuck")).toBe(0);
  await fixture.pass(2 * HOUR);
  const hints = one.rows.waitingHints().length;
  expect(alertCount("payment_hint_stuck")).toBe(1);
  Object.assign(refund ?? {}, { currency: "usd" });
  await fixture.pass(HOUR);
  expect([hints > 0, one.rows.waitingHints()]).toEqual([true, []]);
});

/** Returns this number of events, oldest first, the first of which are malformed. */
function manyEvents(
  count: number,
  startS: number,
): { readonly id: string; readonly created: number }[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `evt_${at}`,
    created: startS + Math.floor(at / 7),
    livemode: false,
    data: { object: { id: `cs_${at}`, object: "checkout.session", customer: "cus_1" } },
    ...(at % 1000 !== 0 && { type: "checkout.session.completed" }),
  }));
}

it("a payments sweep that can't read all events continues in the next sweep, even after a malformed event", async () => {
  const START_S = 1_800_000_000;
  const events = manyEvents(12_345, START_S);
  const eventIds = new Set<string>();
  let cursor: EventSweepCursor | null = { sinceS: START_S, rest: null };
  const to: EventDispatchServices = {
    isLive: false,
    stripe: {
      ask: async (call) => ({ kind: "done", body: pageOf(events, call), requestId: null }),
    },
    payments: () => ({
      hint: async ({ eventId }) => {
        eventIds.add(eventId);
        return success(null);
      },
    }),
    store: {
      organizationOf: async () => "org_a",
      isOrganization: async () => true,
      cursor: async () => cursor,
      moveCursor: async (moved) => {
        cursor = moved;
      },
    },
  };
  const nowS = START_S + 2000;
  const counts: (number | null)[] = [];
  for (let sweep = 0; sweep < 3; sweep++) {
    counts.push(await dispatchMissedEvents(to, (nowS + sweep * 900) * 1000));
  }
  expect(counts.slice(0, 2)).toEqual([5000, 5000]);
  expect(eventIds.size).toBe(12_345 - 13);
  expect(alertCount("payments_sweep_cut")).toBe(2);
  expect(cursor).toEqual({ sinceS: nowS, rest: null });
});

function pageOf(
  events: readonly { readonly id: string; readonly created: number }[],
  call: StripeCall,
): object {
  const query = new URL(call.path, "http://stripe.test").searchParams;
  const gte = Number(query.get("created[gte]") ?? 0);
  const lte = Number(query.get("created[lte]") ?? Infinity);
  const listed = events.filter(({ created }) => created >= gte && created <= lte).toReversed();
  const from = listed.findIndex(({ id }) => id === query.get("starting_after")) + 1;
  const data = listed.slice(from, from + 100);
  return { data, has_more: from + data.length < listed.length };
}

it("three declines in a day disable a saved card, not counting the gateway's own failures", () => {
  const nowMs = Date.UTC(2026, 10, 20);
  const order = { id: "pur_1", amountMicro: micros(5_000_000), saveCard: false, returnUrl: "" };
  const pending = createPendingPurchase(
    { ...order, method: "card", actor: SYSTEM_ACTOR },
    nowMs - 1000,
  );
  const declined = { ...pending, state: "declined", error: "insufficient_funds" } as const;
  const numbers = {
    FIRST_WEEK_DOLLARS_A_DAY: 100,
    PURCHASE_DOLLARS_A_DAY: 1000,
    CARD_DOLLARS_A_DAY: 500,
  } as NumericConfigVariables;
  const buying = {
    orgId: "org_a",
    orgName: "A",
    orgCreatedAt: 0,
    amountMicro: micros(5_000_000),
    saveCard: false,
    returnUrl: "",
    idempotency: { name: "n", body: "b" },
    actor: SYSTEM_ACTOR,
    isPerson: true,
  };
  const refused = (method: "card" | "checkout", recent: readonly (typeof pending)[]) =>
    checkPurchaseLimits({ ...buying, method }, recent, { numbers, nowMs });
  for (const method of ["card", "checkout"] as const) {
    expect(refused(method, [declined, declined])).toBeNull();
    expect(refused(method, [declined, declined, declined])).toMatchObject({
      failure: { kind: "purchase_limit", why: "declines" },
    });
    const ours = { ...declined, error: "misconfigured" } as const;
    expect(refused(method, [ours, ours, ours])).toBeNull();
    const old = { ...declined, createdAt: nowMs - 25 * HOUR };
    expect(refused(method, [old, old, old])).toBeNull();
  }
});
