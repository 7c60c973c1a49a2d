import { createServer } from "node:http";
import { mkdtempSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { Stripe } from "stripe";
import { afterEach, expect, it } from "vitest";
import { API_VERSION } from "../fakes/stripe/state.ts";
import { serveStripe } from "../../scripts/dev-stripe.ts";
import type { ServedStripe } from "../../scripts/dev-stripe.ts";

const SECRETS = ["whsec_new", "whsec_old"] as const;
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve(directory?: string): Promise<{ served: ServedStripe; client: Stripe }> {
  const served = await serveStripe({ ...(directory !== undefined && { directory }) });
  closing.push(served.close);
  const { hostname: host, port } = new URL(served.url);
  const options = { host, port, protocol: "http", telemetry: false, maxNetworkRetries: 0 } as const;
  return { served, client: new Stripe("sk_test_local", options) };
}

/** Receives webhooks and verifies each with Stripe's package. Rejects the first one. */
async function receive() {
  const events: { readonly type: string; readonly secret: string }[] = [];
  let calls = 0;
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const header = String(request.headers["stripe-signature"]);
      const isFirst = calls++ === 0;
      for (const secret of isFirst ? [] : SECRETS) {
        const { type } = await Stripe.webhooks.constructEventAsync(body, header, secret);
        events.push({ type, secret });
      }
      response.writeHead(isFirst ? 503 : 200).end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  return {
    events,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/payments`,
  };
}

const sell = async (client: Stripe): Promise<Stripe.Checkout.Session> => {
  const { id: customer } = await client.customers.create({ name: "<b>Acme</b>" });
  return client.checkout.sessions.create({
    mode: "payment",
    customer,
    line_items: [
      {
        price_data: {
          currency: "usd",
          unit_amount: 1000,
          product_data: { name: "<i>Credits</i>" },
        },
        quantity: 1,
      },
    ],
    success_url: "http://127.0.0.1:9/console/#/credits?purchase=pur_1",
    cancel_url: "http://127.0.0.1:9/console/#/credits",
  });
};

const press = (url: string, fields: Record<string, string>): Promise<Response> =>
  fetch(url, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" });

it("npm start's simulated Stripe offers a payment page with buttons, and repeats signed webhooks until the receiver accepts them", async () => {
  const { served, client } = await serve();
  const { events, url: endpoint } = await receive();
  served.sendTo([{ url: endpoint, secrets: SECRETS }]);
  const session = await sell(client);
  const url = session.url ?? "";
  const shown = await (await fetch(url)).text();
  expect(shown).toContain("Pay $10.00");
  expect(shown).not.toMatch(/<b>Acme|<i>Credits/);
  expect((await press(url, { do: "leave" })).headers.get("location")).toBe(session.cancel_url);
  await press(url, { do: "decline" });
  expect(await (await fetch(url)).text()).toContain("Try another card");
  await press(url, { do: "asks" });
  expect(await (await fetch(url)).text()).toContain("Your bank asks");
  const paid = await press(url, { do: "approve" });
  expect([paid.status, paid.headers.get("location")]).toEqual([303, session.success_url]);
  expect((await press(url, { do: "pay" })).status).toBe(400);
  const [payment] = served.fake.payments();
  await press(served.url, { do: "half", intent: payment?.intent ?? "" });
  await press(served.url, { do: "dispute", intent: payment?.intent ?? "" });
  expect(served.fake.truth(payment?.intent ?? "")).toMatchObject({ refunded: 500, gross: 1000 });
  await expect
    .poll(() => events.map(({ type }) => type))
    .toEqual(expect.arrayContaining(["checkout.session.completed", "charge.dispute.created"]));
  await expect.poll(() => events.length).toBe(served.fake.events.length * SECRETS.length);
});

it("npm start's simulated Stripe keeps its state across a restart, and drops responses if configured", async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "turnpike-stripe-"));
  const before = await serve(directory);
  const { id } = await sell(before.client);
  before.served.close();
  const { served, client } = await serve(directory);
  expect((await client.checkout.sessions.retrieve(id)).status).toBe("open");
  served.fake.person.pay(id);
  expect((await client.checkout.sessions.retrieve(id)).payment_status).toBe("paid");
  for (const kind of ["no_answer", "reset"] as const) {
    served.fake.fault({ kind, when: "after" });
    const response = fetch(`${served.url}/v1/customers`, {
      method: "POST",
      headers: {
        authorization: "Bearer sk_test_local",
        "content-type": "application/x-www-form-urlencoded",
        "stripe-version": API_VERSION,
      },
    }).then((answer) => answer.text());
    await expect(response).rejects.toThrow(/failed|terminated/);
  }
  expect(served.fake.world.customers.size).toBe(3);
});
