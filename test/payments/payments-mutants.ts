import { success } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import { buildReadInvoiceCall } from "../../src/money/payments/stripe-calls.ts";
import type { PaymentDeps } from "../../src/money/payments/purchase.ts";
import type { Broken } from "./payments-fixture.ts";

/** Returns services whose wallet answers some calls differently. */
const withWallet = (
  change: (wallet: PaymentDeps["wallet"], deps: PaymentDeps) => Partial<PaymentDeps["wallet"]>,
): Broken => ({
  wrapDeps: (deps) => ({ ...deps, wallet: { ...deps.wallet, ...change(deps.wallet, deps) } }),
});
/** Returns services that call Stripe differently. */
const withCalls = (
  change: (call: Parameters<PaymentDeps["stripe"]["ask"]>[0], deps: PaymentDeps) => typeof call,
): Broken => ({
  wrapDeps: (deps) => ({
    ...deps,
    stripe: { ask: (call) => deps.stripe.ask(change(call, deps)) },
  }),
});
let callCount = 0;

/** Faulty versions of the payments code. The test's check must detect each. */
export const MUTANTS: Readonly<Record<string, Broken>> = {
  "debts aren't collected": { collects: false },
  "repeated reports of a refund are added up": withWallet((wallet, { rows }) => ({
    setBack: (back) => {
      const before = rows.payment(back.paymentId)?.backMicro ?? micros(0);
      return wallet.setBack({ ...back, backMicro: micros(before + back.backMicro) });
    },
  })),
  "a payment is credited once by the purchase's ID and once by the payment's ID": withWallet(
    (wallet) => ({
      creditPayment: async (credit) => {
        await wallet.creditPayment({ ...credit, paymentId: credit.purchaseId });
        return wallet.creditPayment(credit);
      },
    }),
  ),
  "each attempt of a call has another Idempotency-Key": withCalls((call) => ({
    ...call,
    key: call.key === null ? null : `${call.key}:${++callCount}`,
  })),
  "a retry of a checkout has another expiry": withCalls((call, { now }) => ({
    ...call,
    body:
      call.body?.replace(/expires_at=\d+/, `expires_at=${Math.floor(now() / 1000) + 3600}`) ?? null,
  })),
  "an event is marked as processed before the processing": {
    wrapDeps: (deps) => {
      const { rows } = deps;
      const putWaiting: typeof rows.putWaitingHint = (hint) =>
        hint.tries > 0 ? rows.markHintProcessed(hint, 0) : rows.putWaitingHint(hint);
      const seen = new Proxy(rows, {
        get: (of, name) => {
          if (of[name as keyof typeof of] === of.putWaitingHint) return putWaiting;
          const method = Reflect.get(of, name) as (...args: unknown[]) => unknown;
          return method.bind(of);
        },
      });
      return { ...deps, rows: seen };
    },
  },
  "tax is credited": {
    wrapDeps: (deps) => ({
      ...deps,
      wallet: {
        ...deps.wallet,
        creditPayment: (credit) =>
          deps.wallet.creditPayment({
            ...credit,
            netMicro: micros(Math.ceil(credit.netMicro * 1.19)),
          }),
      },
    }),
  },
  "a rejection by the wallet counts as a credit": withWallet((wallet) => ({
    creditPayment: async (credit) => {
      const answer = await wallet.creditPayment(credit);
      return answer.ok ? answer : success({ madeAt: 1 });
    },
  })),
};

type ChargeMutant = { readonly broken: Broken; readonly bank: string; readonly fault: RegExp };

/**
 * Faulty versions of the code that charges a saved card, with the bank's behavior and the fault to
 * detect.
 */
export const CHARGE_MUTANTS: Readonly<Record<string, ChargeMutant>> = {
  "a permanently declined card is charged again": {
    broken: withWallet((wallet) => ({
      tellPurchase: ({ topUp, ...report }) => {
        const soft = topUp === null ? null : { ...topUp, end: { kind: "soft" as const } };
        return wallet.tellPurchase({ ...report, topUp: soft });
      },
    })),
    bank: "lost_card",
    fault: /10: org_a is charged after/,
  },
  "declines aren't counted": {
    broken: {
      wallet: (wallet) => {
        const tellPurchase = wallet.tellPurchase.bind(wallet);
        wallet.tellPurchase = async (report) => {
          const { stored } = wallet;
          wallet.stored = { ...stored, topUp: { ...stored.topUp, declines: 0 } };
          return tellPurchase(report);
        };
        return wallet;
      },
    },
    bank: "insufficient_funds",
    fault: /10: org_a is declined 5 times/,
  },
  "a draft invoice is paid": {
    broken: withCalls((call) => {
      const [, draft] = /invoices\/(\w+)\/finalize$/.exec(call.path) ?? [];
      return draft === undefined ? call : buildReadInvoiceCall(draft);
    }),
    bank: "insufficient_funds",
    fault: /11: in_\w+ is paid while it is draft/,
  },
  "another purchase's invoice is paid": {
    broken: withCalls((call) => ({
      ...call,
      path: call.path.replace(/invoices\/\w+\/pay$/, "invoices/in_other/pay"),
    })),
    bank: "insufficient_funds",
    fault: /11: in_other is paid, and is no purchase's/,
  },
};
