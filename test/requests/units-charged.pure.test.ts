import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Catalog } from "../../src/models/catalog/catalog.ts";
import type { Model, Route } from "../../src/models/catalog/model.ts";
import { getPriceForPrompt } from "../../src/models/catalog/price.ts";
import { SALE_TERMS } from "../fixtures/bound-request.ts";
import { computeRequestBounds } from "../../src/models/requests/bound-request.ts";
import { computeCharge, computeChargeWithoutResponse } from "../../src/models/requests/charge.ts";
import type { Outcome, PaidRequest } from "../../src/models/requests/paid-request.ts";
import type { EndpointAdapter } from "../../src/models/core/endpoint-adapter.ts";
import { computeCost } from "../../src/shared/cost.ts";
import { CALL_KINDS } from "../../src/shared/kinds.ts";
import { COUNTED_UNITS, NO_USAGE } from "../../src/shared/usage.ts";
import type { CountedUnit, Unit, Usage } from "../../src/shared/usage.ts";
import { ENDPOINTS } from "../../src/models/endpoints/endpoints.ts";
import { ENDPOINT_BODIES } from "../fixtures/endpoint-bodies.ts";
import type { EndpointBodies } from "../fixtures/endpoint-bodies.ts";
import { MODEL, runOf, SERVING } from "./run-fixture.ts";

const MICROS = fc.integer({ min: 1, max: 100_000_000 });
const REFUSES = { header: () => undefined, query: () => undefined };

function countedBy(kind: EndpointBodies["kind"]): readonly CountedUnit[] {
  const units: readonly Unit[] = CALL_KINDS[kind].units;
  return COUNTED_UNITS.filter((unit) => units.includes(unit));
}

/** Returns prices of any units of the kind, with or without input. */
function priceOf(kind: EndpointBodies["kind"]) {
  const units = Object.fromEntries(
    [...countedBy(kind), "request"].map((unit) => [unit, fc.option(MICROS, { nil: undefined })]),
  );
  return fc
    .record({ input: fc.oneof(fc.constant(0), MICROS), units: fc.record(units) })
    .map(({ input, units: all }) => {
      const priced = Object.entries(all).filter(([, price]) => price !== undefined);
      const unitPrices = Object.fromEntries(priced) as NonNullable<Route["price"]["units"]>;
      return { input, cached: input, cacheWrite: input, output: 0, units: unitPrices };
    });
}

/** Returns usage that a provider can report: none, a part, the right one, or far too much. */
function reportedUsage(kind: EndpointBodies["kind"]): fc.Arbitrary<Usage | null> {
  const count = fc.option(fc.nat(1_000_000), { nil: undefined });
  const units = Object.fromEntries(countedBy(kind).map((unit) => [unit, count]));
  const counts = fc.record({ input: fc.nat(10_000_000), units: fc.record(units) });
  return fc.option(
    counts.map(({ input, units: all }) => {
      const defined = Object.entries(all).filter(([, counted]) => counted !== undefined);
      return Object.assign(Object.fromEntries(defined), NO_USAGE, { input });
    }),
  );
}

type Price = Route["price"];

/**
 * Returns the billed units: the report up to the hold, or the hold if no priced unit was reported.
 */
function billed(unit: CountedUnit, held: number, reported: number | undefined, price: Price) {
  if (reported !== undefined) return Math.min(reported, held);
  return price.units?.[unit] === undefined || held === 0 ? undefined : held;
}

function boundOf(
  endpoint: EndpointAdapter,
  body: object,
  { kind, price }: { readonly kind: EndpointBodies["kind"]; readonly price: Route["price"] },
): PaidRequest | null {
  const parsed = endpoint.parse({ ...body, model: "m" }, REFUSES);
  if (!parsed.ok) return null;
  const route: Route = { provider: "up", upstreamId: "m", dataRegion: "global", price };
  const model: Model = { ...MODEL, id: "m", kind, routes: [route] };
  const catalog: Catalog = {
    span: { from: -Infinity, until: Infinity },
    models: new Map([["m", model]]),
    aliases: new Map(),
    bareNames: new Map(),
    region: "eu",
  };
  const bound = computeRequestBounds(parsed.value, {
    ...SALE_TERMS,
    catalog,
    providers: new Map(),
  });
  return bound.ok ? bound.value : null;
}

type Billed = { readonly charged: Usage; readonly reported: Usage };

function expectBilled({ prompt }: PaidRequest, price: Price, { charged, reported }: Billed): void {
  const { bound, likely, units: held = {} } = prompt;
  const units = COUNTED_UNITS.map((unit) => [
    unit,
    billed(unit, held[unit] ?? 0, reported[unit], price),
  ]);
  expect(charged).toMatchObject(
    Object.fromEntries(units.filter(([, count]) => count !== undefined)),
  );
  const unreported = price.input === 0 ? [0, likely] : [bound];
  const input = reported.input === 0 ? unreported : [Math.min(reported.input, bound)];
  expect(input).toContain(charged.input);
}

function settled(outcome: Outcome): Extract<Outcome, { kind: "settle" }> {
  if (outcome.kind !== "settle") throw new Error("it is not charged");
  return outcome;
}

const MEASURED = ENDPOINT_BODIES.filter(({ kind }) => countedBy(kind).length > 0);

const pathsOf = (endpoints: readonly EndpointAdapter[]) =>
  endpoints.map(({ path }) => path).toSorted();

it("the generator of request bodies covers every endpoint", () => {
  expect(pathsOf(ENDPOINT_BODIES.map(({ endpoint }) => endpoint))).toEqual(pathsOf(ENDPOINTS));
});

describe.each(MEASURED)("the charge of a request to the $endpoint.name endpoint", (row) => {
  const { endpoint, kind, bodies } = row;

  it("equals price times units, up to the held amount, and is never zero", () => {
    fc.assert(
      fc.property(bodies, priceOf(kind), reportedUsage(kind), (body, price, usage) => {
        const request = boundOf(endpoint, body as object, { kind, price });
        fc.pre(request !== null);
        if (request === null) return;
        const [route] = request.routes;
        if (route === undefined) throw new Error("no route");
        const run = { ...runOf(), request };
        const serving = { ...SERVING, route, cap: null };
        const ending = { ending: "complete", hasClientStoppedReading: false } as const;
        const seen = { usage, output: 0, finishReason: null };
        const charge = settled(computeCharge(run, serving, seen, ending));
        const unanswered = settled(computeChargeWithoutResponse(run, serving));
        expect(charge.cost).toBe(computeCost(getPriceForPrompt(route, 0), charge.usage));
        expect(Math.max(charge.cost, unanswered.cost)).toBeLessThanOrEqual(request.bounds.most);
        expectBilled(request, price, { charged: charge.usage, reported: usage ?? NO_USAGE });
        expectBilled(request, price, { charged: unanswered.usage, reported: NO_USAGE });
      }),
    );
  });
});
