import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { FakeStripe } from "../fakes/stripe/fake.ts";

/** Where the tests' Worker asks Stripe (`STRIPE_BASE_URL` of vitest.config.ts): nobody listens there. */
const STRIPE_URL = "http://127.0.0.1:1";

/** A Stripe of this isolate's own, in place of the network, until the test's mocks are restored. */
export function useStripe(now: () => number = () => Date.now()): FakeStripe {
  const stripe = new FakeStripe({ now });
  putInPlace(stripe);
  return stripe;
}

/** Puts a Stripe that is there in place of the network, until the test's mocks are restored. */
export function putInPlace(stripe: FakeStripe): void {
  const real = globalThis.fetch;
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
    const request = new Request(input, init);
    return request.url.startsWith(`${STRIPE_URL}/`) ? stripe.handle(request) : real(input, init);
  });
}

export const paymentsOf = (orgId: string) => env.PAYMENTS.getByName(orgId);
