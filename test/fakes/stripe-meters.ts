import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

type Event = { readonly name: string; readonly customer: string; readonly value: number };

/**
 * Serves the part of Stripe's API that docs/billing.md uses. A preview adds up the meter events of a
 * customer's price. Unknown calls and missing fields get an error.
 */
export async function serveMeters(): Promise<{
  readonly url: string;
  readonly calls: readonly string[];
  readonly close: () => void;
}> {
  const meters = new Map<string, string>();
  const prices = new Map<string, string>();
  const subscribed = new Map<string, string>();
  const events = new Map<string, Event>();
  const calls: string[] = [];
  const routes: Readonly<Record<string, (sent: URLSearchParams) => object>> = {
    "billing/meters": (sent) => {
      meters.set("mtr_1", needed(sent, "event_name"));
      return { id: "mtr_1" };
    },
    prices: (sent) => {
      needed(sent, "unit_amount_decimal");
      prices.set("price_1", meters.get(needed(sent, "recurring[meter]")) ?? "");
      return { id: "price_1" };
    },
    customers: () => ({ id: "cus_Ann" }),
    subscriptions: (sent) => {
      subscribed.set(needed(sent, "customer"), prices.get(needed(sent, "items[0][price]")) ?? "");
      return { status: "active" };
    },
    "billing/meter_events": (sent) => {
      events.set(needed(sent, "identifier"), {
        name: needed(sent, "event_name"),
        customer: needed(sent, "payload[stripe_customer_id]"),
        value: Number(needed(sent, "payload[value]")),
      });
      return {};
    },
    "invoices/create_preview": (sent) => {
      const customer = needed(sent, "customer");
      const own = [...events.values()].filter(
        (one) => one.customer === customer && one.name === subscribed.get(customer),
      );
      return { lines: { data: [{ quantity: own.reduce((sum, { value }) => sum + value, 0) }] } };
    },
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const call = (request.url ?? "").replace("/v1/", "");
    calls.push(call);
    try {
      const found = routes[call]?.(new URLSearchParams(body));
      response.statusCode = found === undefined ? 404 : 200;
      response.end(JSON.stringify(found ?? {}));
    } catch (error) {
      response.statusCode = 400;
      response.end(String(error));
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, calls, close: () => server.close() };
}

function needed(sent: URLSearchParams, name: string): string {
  const value = sent.get(name);
  if (value === null || value === "") throw new Error(`Missing ${name}`);
  return value;
}
