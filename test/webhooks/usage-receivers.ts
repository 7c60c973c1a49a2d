import type { Sent } from "./receivers.ts";

/**
 * A service that receives usage and deduplicates as its documentation says. `rows` has the charge in
 * micro-credits by request.
 */
type UsageReceiver = {
  readonly rows: Map<string, number>;
  readonly take: (sent: Sent) => Response;
};
type LagoEvent = {
  readonly transaction_id: string;
  readonly precise_total_amount_cents: string;
  readonly properties: { readonly amount_micro: number };
};
type CloudEvent = { readonly id: string; readonly source: string; data: { amount_micro: number } };
type Attribute = { readonly key: string; readonly value: { readonly intValue?: string } };
type Span = {
  readonly spanId: string;
  readonly name: string;
  readonly attributes: readonly (Attribute & { value: { stringValue?: string } })[];
};

const MICRO_PER_CENT = 10_000;

/** Stripe rejects a repeated identifier with 400. */
function stripe(): UsageReceiver {
  const rows = new Map<string, number>();
  return {
    rows,
    take: ({ url, body }) => {
      const event = new URLSearchParams(body);
      const id = event.get("identifier") ?? "";
      if (!url.endsWith("/v1/billing/meter_events")) return refused(404, "no path");
      if (rows.has(id)) return refused(400, `An event already exists with identifier ${id}.`);
      rows.set(id, Number(event.get("payload[value]")));
      return new Response("{}");
    },
  };
}

/** OpenMeter ignores a repeated ID of the same source. */
function openmeter(): UsageReceiver {
  const rows = new Map<string, number>();
  return {
    rows,
    take: ({ url, body, headers }) => {
      const isBatch = headers.get("content-type") === "application/cloudevents-batch+json";
      if (!isBatch || !url.endsWith("/api/v1/events")) return refused(400, "no batch");
      for (const { id, data } of JSON.parse(body) as CloudEvent[]) rows.set(id, data.amount_micro);
      return new Response(null, { status: 204 });
    },
  };
}

/** Lago rejects a whole batch with 422 if it has one of the IDs. */
function lago(): UsageReceiver {
  const rows = new Map<string, number>();
  return {
    rows,
    take: ({ url, body }) => {
      if (!url.endsWith("/api/v1/events/batch")) return refused(404, "no path");
      const { events } = JSON.parse(body) as { events: LagoEvent[] };
      if (events.length > 100) return refused(422, "too_many_events");
      const known = events.flatMap(({ transaction_id: id }, at) => (rows.has(id) ? [at] : []));
      if (known.length > 0) {
        const details = known.map((at) => [at, { transaction_id: ["value_already_exist"] }]);
        return refused(422, JSON.stringify({ error_details: Object.fromEntries(details) }));
      }
      for (const { transaction_id: id, precise_total_amount_cents: cents } of events) {
        rows.set(id, Number(cents.replace(".", "")));
        if (Math.round(Number(cents) * MICRO_PER_CENT) !== rows.get(id)) throw new Error(cents);
      }
      return new Response("{}");
    },
  };
}

/** Tracing services replace a span with the same ID. */
function otlp(): UsageReceiver {
  const rows = new Map<string, number>();
  return {
    rows,
    take: ({ url, body }) => {
      if (!url.endsWith("/v1/traces")) return refused(404, "no path");
      for (const { attributes } of spansOf(body)) {
        const valueOf = (key: string) => attributes.find((one) => one.key === key)?.value;
        const id = valueOf("turnpike.request_id")?.stringValue ?? "";
        rows.set(id, Number(valueOf("turnpike.amount_micro")?.intValue));
      }
      return new Response("{}");
    },
  };
}

export function spansOf(body: string): readonly Span[] {
  const { resourceSpans } = JSON.parse(body) as {
    resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

function refused(status: number, text: string): Response {
  return new Response(text, { status });
}

/** Receivers by format, with the settings that their webhooks need. */
export const USAGE_RECEIVERS = {
  stripe_meter_events: {
    open: stripe,
    settings: { credential: "rk_test_1", event_name: "ai_usage" },
    auth: ["authorization", "Bearer rk_test_1"],
  },
  openmeter: {
    open: openmeter,
    settings: { credential: "om_1", event_name: "ai_usage" },
    auth: ["authorization", "Bearer om_1"],
  },
  lago: {
    open: lago,
    settings: { credential: "lago_1", event_name: "ai_usage" },
    auth: ["authorization", "Bearer lago_1"],
  },
  otlp: {
    open: otlp,
    settings: { credential: "team_1", header: "x-honeycomb-team" },
    auth: ["x-honeycomb-team", "team_1"],
  },
} as const;
