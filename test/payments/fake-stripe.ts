import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { FakeStripe } from "../fakes/stripe/fake.ts";

/** Stripe's URL in the tests (`STRIPE_BASE_URL` in vitest.config.ts). No server listens there. */
const STRIPE_URL = "http://127.0.0.1:1";

/** Replaces the network by a fake Stripe of this isolate until the test's mocks are restored. */
export function useStripe(now: () => number = () => Date.now()): FakeStripe {
  const stripe = new FakeStripe({ now });
  installStripe(stripe);
  return stripe;
}

/** Replaces the network by an existing fake Stripe until the test's mocks are restored. */
export function installStripe(stripe: FakeStripe): void {
  const real = globalThis.fetch;
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
    const request = new Request(input, init);
    return request.url.startsWith(`${STRIPE_URL}/`) ? stripe.handle(request) : real(input, init);
  });
}

export const paymentsOf = (orgId: string) => env.PAYMENTS.getByName(orgId);
